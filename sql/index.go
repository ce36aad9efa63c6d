package sql

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// eventScope is what the terms of a session's events are hashed with.
func eventScope(key sessions.Key) rank.Scope { return rank.ScopeOf("events", string(key)) }

// memoryScope is what the terms of the memories of one scope are hashed with.
func memoryScope(scope memory.Scope, id string) rank.Scope { return rank.ScopeOf(string(scope), id) }

// eventTerms is what a search finds an event by: one that was erased by nothing.
func eventTerms(key sessions.Key, content string) []int64 {
	left := strings.ReplaceAll(content, sessions.ErasedText, "")
	if left == "" && content != "" {
		return nil
	}
	return rank.Keys(eventScope(key), left)
}

// memoryTerms is what a search finds a memory by.
func memoryTerms(scope memory.Scope, id, content string) []int64 {
	return rank.Keys(memoryScope(scope, id), content)
}

// arrayText is PostgreSQL's text of an array.
func arrayText(keys []int64) string {
	text := make([]byte, 0, 2+21*len(keys))
	text = append(text, '{')
	for i, k := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, k, 10)
	}
	return string(append(text, '}'))
}

// planned has each statement planned for its own parameters. Whether the index on terms or that on places is the faster
// depends on the session: a plan that serves all of them reads the whole of the long ones.
type planned struct{ *connections }

func (p planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.connections.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

// backlogBytes is about how much text of events is indexed at a time.
const backlogBytes = 4 << 20

// IndexBacklog makes up to limit events, fewer where they are long, and as many memories findable that were stored without
// their terms: by older releases, by an import, or moved to another scope. Searches read them meanwhile, the newest of each
// session. It returns how many there were; less than limit says that nothing is left.
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

func (s *Store) indexMemories(ctx context.Context, limit int) (int, error) {
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
