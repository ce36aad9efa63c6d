package manage

import (
	"context"
	"fmt"
	"slices"

	"ebb/memory/pages"
	"ebb/sessions"
)

// CancelSchedule ends an active schedule. Operators end those of a session. Members end those of the session's conversation that they
// set, and in their private chat all of it; administrators those of all its sessions. It returns [sessions.ErrNotFound] without an
// active one, as [Over] for one that has ended, and [NotSetter] for another person's. The end of another person's is in the audit.
func (m *Manager) CancelSchedule(ctx context.Context, a Actor, key sessions.Key, id int64) (sessions.Schedule, error) {
	s, err := m.OwnSchedule(ctx, a, key, id)
	if err != nil {
		return s, err
	}
	cancel := func(ctx context.Context) (err error) {
		s, err = m.cfg.Schedules.CancelSchedule(ctx, s.Key, id)
		return err
	}
	own := a.Reader.Private || a.set(s)
	what := pages.Action{Action: Unscheduled, Key: s.Key, Detail: scheduleDetail(id)}
	if !own {
		what.Person = s.Creator.SenderID
	}
	err = m.record(ctx, a, own, what, cancel)
	return s, err
}

// automatic is the actor of ends that no person asked for.
const automatic = "bot"

// RefuseSchedule ends a schedule whose message is refused, with a row in the audit.
func (m *Manager) RefuseSchedule(ctx context.Context, s sessions.Schedule) error {
	a := pages.Action{Actor: automatic, Action: Unscheduled, Key: s.Key, Detail: scheduleDetail(s.ID) + " refused"}
	return m.audited(ctx, a, func(ctx context.Context) error { return m.cfg.Schedules.RefuseSchedule(ctx, s) })
}

func scheduleDetail(id int64) string { return fmt.Sprintf("schedule %d", id) }

// set reports whether the actor set a schedule.
func (a Actor) set(s sessions.Schedule) bool {
	return a.Person != "" && slices.Contains([]sessions.UserID{s.Creator.SenderID, s.Creator.StaffID}, a.Person)
}

// SeesSchedule reports whether the actor may read a schedule of the conversation they ask in: those of the same session, those that
// they set, and for administrators all.
func (a Actor) SeesSchedule(s sessions.Schedule) bool {
	return a.Role >= GroupAdmin || a.Reader.Key == s.Key || a.set(s)
}

// OwnSchedule returns an active schedule that the actor may change or end, with the errors of [Manager.CancelSchedule].
func (m *Manager) OwnSchedule(ctx context.Context, a Actor, key sessions.Key, id int64) (sessions.Schedule, error) {
	s, err := m.cfg.Schedules.Schedule(ctx, key, id)
	switch {
	case err != nil:
		return s, err
	case a.Role == Operator && s.Key != key:
		return s, sessions.ErrNotFound
	case s.State != sessions.ScheduleActive:
		return s, fmt.Errorf("%w: %w", Over, sessions.ErrNotFound)
	case a.Role == Operator:
		return s, nil
	case a.Reader.Key != key:
		return s, NoTurn
	case a.owns(key) || a.set(s):
		return s, nil
	}
	return s, NotSetter
}
