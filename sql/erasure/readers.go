package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
)

// readersOf lists the sessions that may have pinned or found memories, and their source sessions. It runs before they
// are deleted.
func (s *Store) readersOf(ctx context.Context, tx pgx.Tx, ids []int64) ([]string, error) {
	if len(ids) == 0 {
		return []string{}, nil
	}
	scopes, err := s.Q.MemoryScopes(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	p := &dbsqlc.SessionsReadingParams{Teams: []string{}, Robots: []string{}, Conversations: []string{}, SessionKeys: []string{}}
	users := identity.ByRobot{}
	for _, sc := range scopes {
		p.SessionKeys = append(p.SessionKeys, string(sc.SourceSession))
		switch sc.Scope {
		case memory.ScopeTeam:
			p.Teams = append(p.Teams, sc.ScopeID)
		case memory.ScopeGroup:
			r, c := sessions.Key(sc.ScopeID).Conversation()
			p.Robots, p.Conversations = append(p.Robots, string(r)), append(p.Conversations, string(c))
		case memory.ScopeSession:
			p.SessionKeys = append(p.SessionKeys, sc.ScopeID)
		case memory.ScopeUser:
			users.Add(sc.SourceSession, sessions.UserID(sc.ScopeID))
		}
	}
	if p.Users, err = s.identities.AllIDs(ctx, tx, users); err != nil {
		return nil, err
	}
	keys, err := s.Q.SessionsReading(ctx, tx, p)
	return asStrings(keys), err
}

// lockReaders locks readers in the order of their keys, and returns the locked ones.
func (s *Store) lockReaders(ctx context.Context, tx pgx.Tx, p *dbsqlc.ReadersLockParams) ([]string, error) {
	keys, err := s.Q.ReadersLock(ctx, tx, p)
	return asStrings(keys), err
}

func asStrings(keys []sessions.Key) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = string(key)
	}
	return list
}
