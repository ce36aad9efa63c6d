package manage

import (
	"context"
	"errors"
	"testing"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// timetable has one schedule of Li in a group, with the number 1.
type timetable struct {
	sessions.Schedules
	cancelled int
}

func (s *timetable) Schedule(_ context.Context, _ sessions.Key, id int64) (sessions.Schedule, error) {
	switch id {
	case 1:
		return sessions.Schedule{ID: 1, State: sessions.ScheduleActive, Creator: sessions.Message{SenderID: "li"}}, nil
	case 2:
		return sessions.Schedule{ID: 2, State: sessions.ScheduleDone, Creator: sessions.Message{SenderID: "li"}}, nil
	}
	return sessions.Schedule{}, sessions.ErrNotFound
}

func (s *timetable) RefuseSchedule(context.Context, sessions.Schedule) error { return nil }

func (s *timetable) CancelSchedule(context.Context, sessions.Key, int64) (sessions.Schedule, error) {
	s.cancelled++
	return sessions.Schedule{}, nil
}

// actions is an audit in memory.
type actions struct{ rows []pages.Action }

func (a *actions) Begin(_ context.Context, one pages.Action) (int64, error) {
	a.rows = append(a.rows, one)
	return int64(len(a.rows)), nil
}

func (a *actions) End(_ context.Context, one pages.Action, outcome string) error {
	a.rows[one.ID-1].Outcome = outcome
	return nil
}

// A schedule may be cancelled by its creator, by an administrator of the group and by an operator. The audit has all but the first.
func TestCancelSchedule(t *testing.T) {
	t.Parallel()
	in := func(key sessions.Key, private bool) memory.Reader { return memory.Reader{Key: key, Private: private} }
	for name, c := range map[string]struct {
		by   Actor
		id   int64
		want error
	}{
		"creator":         {Actor{Person: "li", Reader: in("k", false)}, 1, nil},
		"other member":    {Actor{Person: "zhang", Reader: in("k", false)}, 1, NotSetter},
		"administrator":   {Actor{Person: "zhang", Role: Admin, Reader: in("k", false)}, 1, nil},
		"private chat":    {Actor{Person: "zhang", Reader: in("k", true)}, 1, nil},
		"other group":     {Actor{Person: "zhang", Role: Admin, Reader: in("x", false)}, 1, NoTurn},
		"operator":        {Actor{Role: Operator, Name: "cli:root"}, 1, nil},
		"ended":           {Actor{Person: "li", Reader: in("k", false)}, 2, sessions.ErrNotFound},
		"unknown":         {Actor{Role: Operator}, 3, sessions.ErrNotFound},
		"nameless member": {Actor{Reader: in("k", false)}, 1, NotSetter},
	} {
		s, audit := &timetable{}, &actions{}
		m := New(Config{Schedules: s, Audit: audit})
		_, err := m.CancelSchedule(t.Context(), c.by, "k", c.id)
		if !errors.Is(err, c.want) || err == nil != (s.cancelled == 1) {
			t.Errorf("%s: %v with %d cancelled, want %v", name, err, s.cancelled, c.want)
		}
		if logged := len(audit.rows) == 1 && audit.rows[0].Action == Unscheduled && audit.rows[0].Outcome == "done" && audit.rows[0].Detail == "schedule 1"; logged != (name == "operator" || name == "administrator" && audit.rows[0].Actor == "zhang") {
			t.Errorf("%s: the audit has %+v", name, audit.rows)
		}
	}
}

// The audit has the end of a schedule whose message is refused.
func TestRefuseSchedule(t *testing.T) {
	t.Parallel()
	audit := &actions{}
	m := New(Config{Schedules: &timetable{}, Audit: audit})
	if err := m.RefuseSchedule(t.Context(), sessions.Schedule{Key: "k", ID: 5}); err != nil {
		t.Fatal(err)
	}
	want := pages.Action{Actor: "bot", Action: Unscheduled, Key: "k", Detail: "schedule 5 refused", Outcome: "done"}
	if len(audit.rows) != 1 || audit.rows[0] != want {
		t.Errorf("the audit has %+v, want %+v", audit.rows, want)
	}
}
