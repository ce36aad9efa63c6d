package erasure

import (
	"context"
	"slices"

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

// readersOf lists the sessions that a deletion of memories locks, see [Store.forgetFacts] and [Store.deleteDerived]. An erasure locks
// them together with its own session, in the order of their keys: in another order two erasures would wait for each other. A reader
// that appears later is locked later, and a deadlock with another erasure is then repeated by the store.
func (s *Store) readersOf(ctx context.Context, ids []int64) ([]sessions.Key, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ids, err := s.withDerived(ctx, s.db.Pool, ids)
	if err != nil {
		return nil, err
	}
	readers, err := s.identities.Readers(ctx, s.db.Pool, ids)
	if err != nil {
		return nil, err
	}
	contents, err := s.db.Q.MemoryContents(ctx, s.db.Pool, ids)
	if err != nil {
		return nil, err
	}
	changed, err := s.db.Q.ReadersToLock(ctx, s.db.Pool, &dbsqlc.ReadersToLockParams{SessionKeys: readers, Leased: true, Replies: true, Facts: asShown(contents)})
	if err != nil {
		return nil, err
	}
	leased, err := s.leasedReaders(ctx, s.db.Pool, ids, "")
	return append(changed, leased...), err
}

// leasedReaders lists the sessions with a lease that may have read memories, except asking.
func (s *Store) leasedReaders(ctx context.Context, db dbsqlc.DBTX, ids []int64, asking sessions.Key) ([]sessions.Key, error) {
	scopes, err := s.db.Q.MemoryScopes(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	of := newScopeIDs()
	for _, sc := range scopes {
		of.add(sc.Scope, sc.ScopeID, sc.SourceSession)
		if sc.Scope == memory.ScopeUser && sc.SourceGroup != "" {
			of.groups = append(of.groups, sc.SourceGroup)
		}
	}
	p := &dbsqlc.SessionsReadScopeParams{Asking: string(asking), Teams: of.teams, Groups: of.groups, SessionKeys: of.sessions}
	if p.Users, err = s.identities.AllIDs(ctx, db, of.users); err != nil {
		return nil, err
	}
	return s.db.Q.SessionsReadScope(ctx, db, p)
}

// asShown are memories as views pin them, and as views of older releases did.
func asShown(contents []string) []string {
	shown := []string{}
	for _, c := range contents {
		shown = append(shown, c, memory.InLine(c))
	}
	return slices.Compact(shown)
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
