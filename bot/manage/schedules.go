package manage

import (
	"context"
	"fmt"
	"slices"

	"ebb/sessions"
)

// CancelSchedule ends an active schedule of a session. A member may end those that they set, and in their private chat all of it. It
// returns [sessions.ErrNotFound] without an active one, and [NotSetter] for another person's.
func (m *Manager) CancelSchedule(ctx context.Context, a Actor, key sessions.Key, id int64) (sessions.Schedule, error) {
	s, err := m.scheduleOf(ctx, a, key, id)
	if err != nil {
		return s, err
	}
	return recorded(ctx, m, a, Unscheduled, key, fmt.Sprintf("schedule %d", id), func(ctx context.Context) (sessions.Schedule, error) {
		return m.cfg.Schedules.CancelSchedule(ctx, key, id)
	})
}

// MayChangeSchedule returns nil for an active schedule that the actor may change, else the errors of [Manager.CancelSchedule].
func (m *Manager) MayChangeSchedule(ctx context.Context, a Actor, key sessions.Key, id int64) error {
	_, err := m.scheduleOf(ctx, a, key, id)
	return err
}

// scheduleOf returns an active schedule that the actor may change or end, with the errors of [Manager.CancelSchedule].
func (m *Manager) scheduleOf(ctx context.Context, a Actor, key sessions.Key, id int64) (sessions.Schedule, error) {
	s, err := m.cfg.Schedules.Schedule(ctx, key, id)
	switch {
	case err != nil:
		return s, err
	case s.State != sessions.ScheduleActive:
		return s, sessions.ErrNotFound
	case a.Role == Operator:
		return s, nil
	case a.Reader.Key != key:
		return s, NoTurn
	case a.owns(key) || a.Person != "" && slices.Contains([]sessions.UserID{s.Creator.SenderID, s.Creator.StaffID}, a.Person):
		return s, nil
	}
	return s, NotSetter
}
