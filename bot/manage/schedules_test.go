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
	key       sessions.Key // session of the cancelled one
}

func (s *timetable) Schedule(_ context.Context, _ sessions.Key, id int64) (sessions.Schedule, error) {
	switch id {
	case 1:
		return sessions.Schedule{ID: 1, Key: "k", State: sessions.ScheduleActive, Creator: sessions.Message{SenderID: "li"}}, nil
	case 2:
		return sessions.Schedule{ID: 2, Key: "k", State: sessions.ScheduleDone, Creator: sessions.Message{SenderID: "li"}}, nil
	case 4:
		return sessions.Schedule{ID: 4, Key: "k/li", State: sessions.ScheduleActive, Creator: sessions.Message{SenderID: "li"}}, nil
	}
	return sessions.Schedule{}, sessions.ErrNotFound
}

func (s *timetable) RefuseSchedule(context.Context, sessions.Schedule) error { return nil }

func (s *timetable) CancelSchedule(_ context.Context, key sessions.Key, _ int64) (sessions.Schedule, error) {
	s.cancelled++
	s.key = key
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
		"ended":           {Actor{Person: "li", Reader: in("k", false)}, 2, Over},
		"ended, operator": {Actor{Role: Operator}, 2, sessions.ErrNotFound},
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

// After a change of the scope, creators and administrators end and see reminders of the conversation's other sessions. Others don't,
// and an operator names the session itself.
func TestSchedulesOfOtherScope(t *testing.T) {
	t.Parallel()
	reader := memory.Reader{Key: "k"}
	for name, c := range map[string]struct {
		by    Actor
		want  error
		shown bool
	}{
		"creator":       {Actor{Person: "li", Reader: reader}, nil, true},
		"other member":  {Actor{Person: "zhang", Reader: reader}, NotSetter, false},
		"administrator": {Actor{Person: "zhang", Role: Admin, Reader: reader}, nil, true},
		"operator":      {Actor{Role: Operator, Name: "cli:root"}, sessions.ErrNotFound, true},
	} {
		s, audit := &timetable{}, &actions{}
		_, err := New(Config{Schedules: s, Audit: audit}).CancelSchedule(t.Context(), c.by, "k", 4)
		if !errors.Is(err, c.want) || err == nil && s.key != "k/li" {
			t.Errorf("%s: %v, in session %q, want %v", name, err, s.key, c.want)
		}
		if len(audit.rows) == 1 && audit.rows[0].Key != "k/li" {
			t.Errorf("%s: the audit has %+v", name, audit.rows)
		}
		other, _ := s.Schedule(t.Context(), "k", 4)
		same, _ := s.Schedule(t.Context(), "k", 1)
		if c.by.SeesSchedule(other) != c.shown || !c.by.SeesSchedule(same) {
			t.Errorf("%s: sees the other session's: %t, want %t", name, c.by.SeesSchedule(other), c.shown)
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
