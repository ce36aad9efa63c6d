package vectors

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"sync"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store stores vectors.
type Store struct {
	db       *pg.DB
	embedMu  sync.Mutex
	embedded map[string]int64 // by model: the last memory up to which all have vectors
}

// New returns the vectors of a database.
func New(db *pg.DB) *Store {
	return &Store{db: db, embedded: make(map[string]int64)}
}

// Bounds of one call.
const (
	MaxEmbedded   = 2000 // characters of a text
	memoriesPage  = 2000 // memories
	eventsPage    = 500  // events of a session
	sessionsPage  = 64   // sessions
	outdatedBatch = 5000 // deletions of a statement
)

// Hash is the key of a text's vector, equal to sha256(convert_to(content, 'UTF8')) in SQL.
func Hash(content string) []byte {
	sum := sha256.Sum256([]byte(content))
	return sum[:]
}

// ScopeKey is the key of the vectors of a scope's memories. The session's key of events never contains this sign.
func ScopeKey(scope memory.Scope, id string) string { return string(scope) + "|" + id }

// Unembedded implements embed.Store. It reads all memories once a process, then the new ones. The table has a cursor
// for each session's log.
func (s *Store) Unembedded(ctx context.Context, model string, limit int) ([]memory.Unembedded, error) {
	texts, err := s.memoriesUnembedded(ctx, model, limit)
	if err == nil && len(texts) < limit {
		var events []memory.Unembedded
		events, err = s.eventsUnembedded(ctx, model, limit-len(texts))
		texts = append(texts, events...)
	}
	if err == nil && len(texts) > 0 {
		err = s.know(ctx, model, texts)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for texts without a vector of %s: %w", model, err)
	}
	return texts, nil
}

// memoriesUnembedded goes on behind the rows that are known to be complete, so that a run over a filled table reads nothing. Rows may
// be committed out of order: the cursor stops before one that is new or has no vector.
func (s *Store) memoriesUnembedded(ctx context.Context, model string, limit int) ([]memory.Unembedded, error) {
	s.embedMu.Lock()
	after := s.embedded[model]
	s.embedMu.Unlock()
	var texts []memory.Unembedded
	seen := map[string]bool{}
	for through, whole := after, true; ; {
		rows, err := s.db.Q.MemoriesUnembedded(ctx, s.db.Pool, &dbsqlc.MemoriesUnembeddedParams{
			MaxChars: MaxEmbedded, AfterID: after, MaxRows: memoriesPage, Model: model,
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			after = r.ID
			if r.Missing && !seen[r.ScopeKey+string(r.ContentHash)] {
				seen[r.ScopeKey+string(r.ContentHash)] = true
				texts = append(texts, memory.Unembedded{
					ScopeKey: r.ScopeKey, Hash: r.ContentHash, Session: r.SourceSession, MemoryID: r.ID, Content: r.Content,
				})
			}
			// Missing vectors, and rows so new that older ones may still be committed, are read again.
			if whole = whole && r.Settled && !r.Missing; whole {
				through = r.ID
			}
			if len(texts) == limit {
				break
			}
		}
		if len(texts) == limit || len(rows) < memoriesPage {
			s.embedMu.Lock()
			s.embedded[model] = max(s.embedded[model], through)
			s.embedMu.Unlock()
			return texts, nil
		}
	}
}

// Cursors of sessions move past events with vectors.
func (s *Store) eventsUnembedded(ctx context.Context, model string, limit int) ([]memory.Unembedded, error) {
	var texts []memory.Unembedded
	for len(texts) == 0 {
		rows, err := s.db.Q.SessionsUnembedded(ctx, s.db.Pool, &dbsqlc.SessionsUnembeddedParams{Model: model, MaxRows: sessionsPage})
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		for _, r := range rows {
			more, err := s.sessionUnembedded(ctx, model, r, limit-len(texts))
			if err != nil {
				return nil, fmt.Errorf("in session %s: %w", r.SessionKey, err)
			}
			if texts = append(texts, more...); len(texts) == limit {
				break
			}
		}
	}
	return texts, nil
}

// sessionUnembedded moves the cursor of a session over pages without work, so that they are read once. A page with texts moves it
// when their vectors are stored.
func (s *Store) sessionUnembedded(
	ctx context.Context, model string, r dbsqlc.SessionsUnembeddedRow, limit int,
) ([]memory.Unembedded, error) {
	var texts []memory.Unembedded
	seen := map[string]bool{}
	for from := r.ThroughSeq; from < r.LastSeq; from += eventsPage {
		through := min(from+eventsPage, r.LastSeq)
		rows, err := s.db.Q.EventsUnembedded(ctx, s.db.Pool, &dbsqlc.EventsUnembeddedParams{
			MaxChars: MaxEmbedded, SessionKey: r.SessionKey, AfterSeq: from, ThroughSeq: through, Erased: sessions.ErasedText,
			Model: model,
		})
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 && len(texts) == 0 {
			if err := s.db.Q.EmbeddingCursorSet(ctx, s.db.Pool, &dbsqlc.EmbeddingCursorSetParams{
				SessionKey: r.SessionKey, Model: model, ThroughSeq: through,
			}); err != nil {
				return nil, err
			}
		}
		for _, e := range rows {
			if seen[string(e.ContentHash)] {
				continue
			}
			seen[string(e.ContentHash)] = true
			texts = append(texts, memory.Unembedded{
				ScopeKey: string(r.SessionKey), Hash: e.ContentHash, Session: r.SessionKey, Seq: pg.OrZero(e.Seq), Content: e.Content,
			})
			if len(texts) == limit {
				return texts, nil
			}
		}
	}
	return texts, nil
}

func (s *Store) know(ctx context.Context, model string, texts []memory.Unembedded) error {
	hashes := make([][]byte, len(texts))
	for i, t := range texts {
		hashes[i] = t.Hash
	}
	rows, err := s.db.Q.EmbeddingsKnown(ctx, s.db.Pool, &dbsqlc.EmbeddingsKnownParams{Hashes: hashes, Model: model})
	if err != nil {
		return err
	}
	known := make(map[string][]float32, len(rows))
	for _, r := range rows {
		known[string(r.ContentHash)] = append([]float32{}, r.Vec...) // an empty vector counts too
	}
	for i := range texts {
		texts[i].Known = known[string(texts[i].Hash)]
	}
	return nil
}

// KeepVectors implements embed.Store. It normalizes vectors to length one, so that their product is the cosine.
func (s *Store) KeepVectors(ctx context.Context, model string, texts []memory.Unembedded, vectors [][]float32) error {
	var keys []sessions.Key
	ids := []int64{}
	for _, t := range texts {
		keys = append(keys, t.Session)
		if t.MemoryID > 0 {
			ids = append(ids, t.MemoryID)
		}
	}
	err := s.db.InTx(ctx, func(tx pgx.Tx) error {
		// An erasure locks its session's row, and a deletion the memory's.
		if err := s.db.ShareSessions(ctx, tx, keys); err != nil {
			return err
		}
		if err := s.db.Q.MemoriesShare(ctx, tx, ids); err != nil {
			return err
		}
		for i, t := range texts {
			v := Unit(vectors[i])
			if _, err := s.db.Q.EmbeddingsInsert(ctx, tx, &dbsqlc.EmbeddingsInsertParams{
				ScopeKey: t.ScopeKey, ContentHash: t.Hash, Model: model, Vec: v, Small: quantize(v), Seq: t.Seq, ID: t.MemoryID,
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keeping %d vectors of %s: %w", len(texts), model, pg.AsRefused(err))
	}
	return nil
}

// DropVectors implements embed.Store.
func (s *Store) DropVectors(ctx context.Context, model string) (int, error) {
	dropped := 0
	for {
		n, err := s.db.Q.EmbeddingsOutdated(ctx, s.db.Pool, &dbsqlc.EmbeddingsOutdatedParams{Model: model, MaxRows: outdatedBatch})
		if err == nil && n == 0 {
			err = s.db.Q.EmbeddingCursorsOutdated(ctx, s.db.Pool, model)
		}
		if err != nil {
			return dropped, fmt.Errorf("deleting vectors of models other than %s: %w", model, err)
		}
		if dropped += int(n); n == 0 {
			return dropped, nil
		}
	}
}

// Unit normalizes a vector to length one. A zero vector becomes empty, since it is near nothing.
func Unit(v []float32) []float32 {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	norm := math.Sqrt(sum)
	if norm == 0 || math.IsInf(norm, 0) || math.IsNaN(norm) {
		return []float32{}
	}
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = float32(float64(f) / norm)
	}
	return out
}
