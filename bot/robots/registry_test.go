package robots

import (
	"context"
	"errors"
	"testing"

	"ebb/bot/chat"
	"ebb/sessions"
)

// installation is its records in memory.
type installation struct {
	known     []sessions.Robot
	err       error
	uncounted error // the count of a robot's work fails with it
}

func (i *installation) SeeRobot(_ context.Context, r sessions.Robot) error {
	i.known = append(i.known, r)
	return i.err
}
func (i *installation) KnownRobots(context.Context) ([]sessions.Robot, error) { return i.known, i.err }
func (i *installation) LeftBy(context.Context, sessions.RobotCode) (sessions.RobotWork, error) {
	return sessions.RobotWork{}, errors.Join(i.err, i.uncounted)
}

// A process speaks for its own robots. An only one also has the codes that no other robot of the installation has, such as that of its
// frames. Before it knows the others it has none of these.
func TestRegistryServes(t *testing.T) {
	t.Parallel()
	a, b := sessions.Robot{Code: "a", Name: "甲"}, sessions.Robot{Code: "b", Name: "乙"}
	records := &installation{}
	one, both := NewRegistry(records, []sessions.Robot{a}), NewRegistry(records, []sessions.Robot{a, b})
	if !one.Serves("a") || !one.Serves("") || one.Serves("normal") {
		t.Error("before the first look an only robot serves others, or not itself")
	}
	if err := one.Task().Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !one.Serves("normal") || !one.Serves("b") {
		t.Error("an only robot does not serve the code of its frames")
	}
	if err := both.Task().Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !both.Serves("a") || !both.Serves("b") || both.Serves("normal") {
		t.Error("several robots serve others, or not themselves")
	}
	if err := one.Task().Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if one.Serves("b") || !one.Serves("normal") || !one.Serves("a") {
		t.Error("an only robot serves one that another process has")
	}
	if others := one.Others(); len(others) != 1 || others[0].Code != "b" {
		t.Errorf("other robots are %v", others)
	}
	records.err = errors.New("away")
	if err := one.Task().Do(t.Context()); !errors.Is(err, records.err) || one.Serves("b") {
		t.Errorf("after a failed look the last one does not hold: %v", err)
	}
}

// The start is recorded once, also where the work of a former robot can't be counted: a record ends the pauses of the robot's replies.
func TestStartIsRecordedOnce(t *testing.T) {
	t.Parallel()
	records := &installation{known: []sessions.Robot{{Code: "gone"}}, uncounted: errors.New("away")}
	registry := NewRegistry(records, []sessions.Robot{{Code: "a"}})
	for range 3 {
		if err := registry.Task().Do(t.Context()); !errors.Is(err, records.uncounted) {
			t.Fatalf("the failed count is not tried again: %v", err)
		}
	}
	records.uncounted = nil
	if err := registry.Task().Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if starts := len(records.known) - 1; starts != 1 {
		t.Errorf("the start was recorded %d times", starts)
	}
}

// An only robot shows the turns of each code that it serves, and those of no former robot.
func TestDisplayOfAnOnlyRobot(t *testing.T) {
	t.Parallel()
	s := &screen{}
	registry := NewRegistry(&installation{known: []sessions.Robot{{Code: "gone"}}}, []sessions.Robot{{Code: "a"}})
	if err := registry.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := New([]Robot{{Code: "a", Transport: &wire{}, Display: s}}, registry).Display()
	for _, robot := range []sessions.RobotCode{"a", "normal", "gone"} {
		d.Show(t.Context(), chat.Shown{Lease: sessions.Lease{Key: sessions.NewKey(robot, "c", "")}})
	}
	if s.shown != 2 {
		t.Errorf("%d turns were shown", s.shown)
	}
}
