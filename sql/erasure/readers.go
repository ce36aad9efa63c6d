package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
)

// The lists are never nil, which would be NULL in a statement.
type scopeIDs struct {
	teams, groups, sessions []string
	users                   identity.ByRobot
}

func newScopeIDs() *scopeIDs {
	return &scopeIDs{teams: []string{}, groups: []string{}, sessions: []string{}, users: identity.ByRobot{}}
}

func (x *scopeIDs) add(scope memory.Scope, id string, source sessions.Key) {
	switch scope {
	case memory.ScopeTeam:
		x.teams = append(x.teams, id)
	case memory.ScopeGroup:
		x.groups = append(x.groups, id)
	case memory.ScopeSession:
		x.sessions = append(x.sessions, id)
	case memory.ScopeUser:
		x.users.Add(source, sessions.UserID(id))
	}
}

// lockReaders returns the keys in their order.
func (s *Store) lockReaders(ctx context.Context, tx pgx.Tx, p *dbsqlc.ReadersToLockParams) ([]string, error) {
	keys, err := s.db.Q.ReadersToLock(ctx, tx, p)
	if err == nil {
		err = s.db.LockSessions(ctx, tx, keys)
	}
	return asStrings(keys), err
}

func asStrings(keys []sessions.Key) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = string(key)
	}
	return list
}
