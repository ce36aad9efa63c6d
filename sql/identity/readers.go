package identity

import (
	"context"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Readers lists the sessions that may have pinned or found memories, and their source sessions. It runs before they
// are deleted.
func (s *Store) Readers(ctx context.Context, db dbsqlc.DBTX, ids []int64) ([]string, error) {
	if len(ids) == 0 {
		return []string{}, nil
	}
	scopes, err := s.db.Q.MemoryScopes(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	p := &dbsqlc.SessionsReadingParams{Teams: []string{}, Robots: []string{}, Conversations: []string{}, SessionKeys: []string{}}
	users := ByRobot{}
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
	if p.Users, err = s.AllIDs(ctx, db, users); err != nil {
		return nil, err
	}
	keys, err := s.db.Q.SessionsReading(ctx, db, p)
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = string(key)
	}
	return list, err
}
