package sql

import (
	"context"
	"fmt"

	"ebb/sql/dbsqlc"
)

// indexStore makes rows findable that were stored without their terms.
type indexStore struct{ *DB }

func newIndexStore(db *DB) *indexStore { return &indexStore{db} }

// backlogBytes is about how much text of events is indexed at a time.
const backlogBytes = 4 << 20

// IndexBacklog makes up to limit events, fewer where they are long, and as many memories findable that were stored without
// their terms: by older releases, by an import, or moved to another scope. Searches read them meanwhile, the newest of each
// session. It returns how many there were; less than limit says that nothing is left.
func (s *indexStore) IndexBacklog(ctx context.Context, limit int) (int, error) {
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

func (s *indexStore) indexEvents(ctx context.Context, limit int) (int, error) {
	rows, err := s.q.EventsBacklog(ctx, s.pool, &dbsqlc.EventsBacklogParams{
		MaxRows: count(limit), MaxChars: maxRead, MaxBytes: backlogBytes,
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	p := &dbsqlc.EventsIndexParams{}
	for _, r := range rows {
		p.SessionKeys = append(p.SessionKeys, string(r.SessionKey))
		p.Ids = append(p.Ids, r.ID)
		p.Hashes = append(p.Hashes, r.ContentHash)
		p.Terms = append(p.Terms, arrayText(eventTerms(r.SessionKey, r.Content)))
	}
	if _, err = s.q.EventsIndex(ctx, s.pool, p); err == nil && len(rows) < rows[0].Listed {
		return limit, nil // the rest of what was listed is left for the next time
	}
	return len(rows), err
}

func (s *indexStore) indexMemories(ctx context.Context, limit int) (int, error) {
	rows, err := s.q.MemoriesBacklog(ctx, s.pool, count(limit))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	p := &dbsqlc.MemoriesIndexParams{}
	for _, r := range rows {
		p.Scopes = append(p.Scopes, string(r.Scope))
		p.ScopeIds = append(p.ScopeIds, r.ScopeID)
		p.Ids = append(p.Ids, r.ID)
		p.Contents = append(p.Contents, r.Content)
		p.Terms = append(p.Terms, arrayText(memoryTerms(r.Scope, r.ScopeID, r.Content)))
	}
	_, err = s.q.MemoriesIndex(ctx, s.pool, p)
	return len(rows), err
}
