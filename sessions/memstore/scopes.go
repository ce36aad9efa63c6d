package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

// ScopeOf implements sessions.Scopes.
func (m Scopes) ScopeOf(ctx context.Context, group sessions.Key) (sessions.Scope, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return m.t.scopes[group], nil
}

// PlaceOf implements sessions.Scopes.
func (m Scopes) PlaceOf(ctx context.Context, msg sessions.Message, among []sessions.Key) (sessions.Place, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Place{}, err
	}
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return m.t.placeOf(msg, among), nil
}

func (m *tables) isElsewhere(key sessions.Key, msg sessions.Message, among []sessions.Key) bool {
	if len(among) == 0 {
		return false
	}
	p := m.placeOf(msg, slices.DeleteFunc(slices.Clone(among), func(k sessions.Key) bool { return k == key }))
	return p.Chosen == sessions.ScopeMember || p.Earlier != "" || p.Waiting != ""
}

func (m *tables) placeOf(msg sessions.Message, among []sessions.Key) sessions.Place {
	p, newest := sessions.Place{Chosen: m.scopes[sessions.ScopeGroup.Key(msg)]}, int64(0)
	senders := []sessions.UserID{msg.SenderID, msg.EncryptedID}
	for _, key := range among {
		stored := m.deleted[deletionOf(key, msg.ID)]
		if s := m.sessions[key]; s != nil {
			for _, e := range s.events {
				stored = stored || e.Role == sessions.RoleUser && e.MsgID == msg.ID
				if e.State == sessions.Pending && e.ID > newest && slices.Contains(senders, e.SenderID) {
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
