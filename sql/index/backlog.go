package index

import (
	"context"
	"fmt"

	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store indexes rows that were stored without their terms.
type Store struct{ *pg.DB }

// New returns the index of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// The size of the event text of one batch is approximate.
const backlogBytes = 4 << 20

// MaxRead bounds the characters of an event that are indexed, and searched for the piece in a hit.
const MaxRead = 200_000

// IndexBacklog indexes up to limit events, fewer when they are long, and as many memories, and returns their number.
// Less than limit means that nothing is left. Imports, changes of scope and older releases leave rows without terms. Meanwhile
// searches find outdated rows by words that both stemmers reduce alike.
func (s *Store) IndexBacklog(ctx context.Context, limit int) (int, error) {
	events, err := s.indexEvents(ctx, limit)
	if err != nil {
		return events, fmt.Errorf("indexing %d events: %w", limit, err)
	}
	memories, err := s.indexMemories(ctx, limit)
	if err != nil {
		return events + memories, fmt.Errorf("indexing %d memories: %w", limit, err)
	}
	return max(events, memories), nil
}

func (s *Store) indexEvents(ctx context.Context, limit int) (int, error) {
	rows, err := s.Q.EventsBacklog(ctx, s.Pool, &dbsqlc.EventsBacklogParams{
		MaxRows: pg.Clamp(limit), MaxChars: MaxRead, MaxBytes: backlogBytes,
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	p := &dbsqlc.EventsIndexParams{}
	for _, r := range rows {
		p.SessionKeys = append(p.SessionKeys, string(r.SessionKey))
		p.Ids = append(p.Ids, r.ID)
		p.Hashes = append(p.Hashes, r.ContentHash)
		p.Terms = append(p.Terms, pg.ArrayText(EventTerms(r.SessionKey, r.Content)))
	}
	if _, err = s.Q.EventsIndex(ctx, s.Pool, p); err == nil && len(rows) < rows[0].Listed {
		return limit, nil // the next call reads the rest of the list
	}
	return len(rows), err
}

func (s *Store) indexMemories(ctx context.Context, limit int) (int, error) {
	rows, err := s.Q.MemoriesBacklog(ctx, s.Pool, pg.Clamp(limit))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	p := &dbsqlc.MemoriesIndexParams{}
	for _, r := range rows {
		p.Scopes = append(p.Scopes, string(r.Scope))
		p.ScopeIds = append(p.ScopeIds, r.ScopeID)
		p.Ids = append(p.Ids, r.ID)
		p.Contents = append(p.Contents, r.Content)
		p.Terms = append(p.Terms, pg.ArrayText(MemoryTerms(r.Scope, r.ScopeID, r.Content)))
	}
	_, err = s.Q.MemoriesIndex(ctx, s.Pool, p)
	return len(rows), err
}
