package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

// PlaceOf implements sessions.Scopes.
func (m Scopes) PlaceOf(ctx context.Context, q sessions.PlaceQuery) (sessions.Place, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Place{}, err
	}
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return m.t.placeOf(q), nil
}

func (m *tables) isElsewhere(key sessions.Key, q sessions.PlaceQuery) bool {
	q.Keys = slices.DeleteFunc(slices.Clone(q.Keys), func(k sessions.Key) bool { return k == key })
	p := m.placeOf(q)
	return p.Chosen == sessions.ScopeMember || p.Earlier != "" || p.Waiting != ""
}

func (m *tables) placeOf(q sessions.PlaceQuery) sessions.Place {
	p, newest := sessions.Place{Chosen: m.scopes[q.Group]}, int64(0)
	for _, key := range q.Keys {
		stored := m.deleted[deletionOf(key, q.ID)]
		if s := m.sessions[key]; s != nil {
			for _, e := range s.events {
				stored = stored || e.Role == sessions.RoleUser && e.MsgID == q.ID
				if e.State == sessions.Pending && e.ID > newest && slices.Contains(q.Senders, e.SenderID) {
					newest, p.Waiting = e.ID, key
				}
			}
		}
		if stored && p.Earlier == "" {
			p.Earlier = key
		}
	}
	return p
}

// ChooseScope implements sessions.Scopes.
func (m Scopes) ChooseScope(ctx context.Context, l sessions.Lease, scope sessions.Scope) error {
	if _, err := m.t.lockSession(ctx, l); err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	if scope == "" {
		delete(m.t.scopes, l.Key.Group())
	} else {
		m.t.scopes[l.Key.Group()] = scope
	}
	return nil
}
