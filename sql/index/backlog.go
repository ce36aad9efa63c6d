package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store indexes logs, and memories that were stored without their terms.
type Store struct {
	db   *pg.DB
	Logs *Logs
}

// New returns the indexing of a database.
func New(db *pg.DB, logs *Logs) *Store { return &Store{db, logs} }

// Logs are the indexes of sessions' logs.
type Logs struct {
	db   *pg.DB
	seen *lru.Cache[sessions.Key, extent]

	mu    *sync.Mutex
	due   map[sessions.Key]urgency
	swept time.Time
}

// urgency orders the sessions that wait for their index.
type urgency int

const (
	found urgency = iota // by the sweep
	noted                // in this process a turn or a search saw that enough places wait
	cut                  // a search could not read all that waits: it is indexed, however few places it has
)

// extent is how long a log is, as far as this process knows, and how much of it is indexed. An erasure elsewhere may lower that.
type extent struct{ last, through int64 }

const (
	// Places of a log that wait for the index. Fewer make more and smaller segments, more cost each search their terms.
	batch = 64
	// maxSeen bounds the sessions whose extent is known; the sweep finds those that were displaced, and those of dead processes.
	maxSeen       = 100_000
	sweepInterval = 10 * time.Minute
	sweepPage     = 200 // sessions
	indexStep     = 2000
	lastPlace     = math.MaxInt64
)

// NewLogs returns the indexes of the logs of a database.
func NewLogs(db *pg.DB) *Logs {
	seen, _ := lru.New[sessions.Key, extent](maxSeen) // it fails only without a size
	return &Logs{db: db, seen: seen, mu: &sync.Mutex{}, due: make(map[sessions.Key]urgency)}
}

// Over returns the same indexes, read over other connections. A session that is noted on either waits once.
func (s *Logs) Over(db *pg.DB) *Logs { return &Logs{db: db, seen: s.seen, mu: s.mu, due: s.due} }

// Note reports the last place of a session's log. The next [Store.IndexBacklog] indexes the log if enough waits.
func (s *Logs) Note(key sessions.Key, last int64) {
	x, _ := s.seen.Get(key)
	if last < x.last { // the log was deleted, and begins again
		x = extent{}
	}
	x.last = last
	s.seen.Add(key, x)
	if last-x.through >= batch {
		s.await(key, noted)
	}
}

// NoteCut reports that a search could not read all texts behind the index of a session.
func (s *Logs) NoteCut(key sessions.Key) { s.await(key, cut) }

func (s *Logs) await(key sessions.Key, u urgency) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[key] = max(s.due[key], u)
}

// IndexBacklog indexes up to about limit places of logs, fewer when their texts are long, and as many memories, and returns their
// number. Less than limit means that nothing is left. Turns leave logs behind their index, whose sessions this process knows.
// Imports, older releases and dead processes do so too: their sessions are looked for now and then.
func (s *Store) IndexBacklog(ctx context.Context, limit int) (int, error) {
	events, err := s.Logs.indexDue(ctx, limit)
	if err != nil {
		return events, fmt.Errorf("indexing %d events: %w", limit, err)
	}
	memories, err := s.indexMemories(ctx, limit)
	if err != nil {
		return events + memories, fmt.Errorf("indexing %d memories: %w", limit, err)
	}
	return max(events, memories), nil
}

// indexDue goes on with the other sessions after a failure in one, which stays due.
func (s *Logs) indexDue(ctx context.Context, limit int) (int, error) {
	if err := s.sweep(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	keys := make([]sessions.Key, 0, len(s.due))
	for _, now := range []urgency{cut, noted, found} {
		for key, u := range s.due {
			if u == now {
				keys = append(keys, key)
			}
		}
	}
	s.mu.Unlock()
	n := 0
	var failures []error
	for _, key := range keys {
		if n >= limit || ctx.Err() != nil {
			break
		}
		indexed, err := s.indexSession(ctx, key, limit-n)
		n += indexed
		if err != nil {
			failures = append(failures, err)
		}
	}
	return n, errors.Join(failures...)
}

// indexSession indexes whole batches and leaves the rest for later: searches read the newest events unindexed. A session that was cut
// is indexed to its end.
func (s *Logs) indexSession(ctx context.Context, key sessions.Key, limit int) (int, error) {
	s.mu.Lock()
	u := s.due[key]
	delete(s.due, key) // before the read: a later note counts
	s.mu.Unlock()
	least := int64(batch)
	if u == cut {
		least = 1
	}
	x, err := s.db.Q.EventIndexRead(ctx, s.db.Pool, key)
	n := 0
	for err == nil && n < limit && (x.LastSeq-x.ThroughSeq >= least || x.Version != TermsVersion && x.ThroughSeq > 0) {
		var step int
		if step, err = s.IndexSession(ctx, key, indexStep); step == 0 {
			break
		}
		n += step
		if err == nil {
			x, err = s.db.Q.EventIndexRead(ctx, s.db.Pool, key)
		}
	}
	if err == nil {
		s.seen.Add(key, extent{x.LastSeq, x.ThroughSeq})
	}
	if err != nil || x.LastSeq-x.ThroughSeq >= least {
		s.await(key, u)
	}
	return n, err
}

// sweep finds the sessions that no note names.
func (s *Logs) sweep(ctx context.Context) error {
	s.mu.Lock()
	rest := !s.swept.IsZero() && time.Since(s.swept) < sweepInterval
	s.mu.Unlock()
	if rest {
		return nil
	}
	for after := ""; ; {
		keys, err := s.db.Q.SessionsUnindexed(ctx, s.db.Pool, &dbsqlc.SessionsUnindexedParams{
			AfterKey: after, Places: batch, Version: TermsVersion, MaxRows: sweepPage,
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		for _, key := range keys {
			s.due[key] = max(s.due[key], found)
		}
		if len(keys) < sweepPage {
			s.swept = time.Now()
		}
		s.mu.Unlock()
		if len(keys) < sweepPage {
			return nil
		}
		after = string(keys[len(keys)-1])
	}
}

func (s *Store) indexMemories(ctx context.Context, limit int) (int, error) {
	rows, err := s.db.Q.MemoriesBacklog(ctx, s.db.Pool, pg.Clamp(limit))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	err = s.db.InTx(ctx, func(tx pgx.Tx) error {
		for _, r := range rows {
			if err := s.db.Q.MemoryIndex(ctx, tx, &dbsqlc.MemoryIndexParams{
				Scope: r.Scope, ScopeID: r.ScopeID, ID: r.ID, Content: r.Content, Terms: MemoryTerms(r.Scope, r.ScopeID, r.Content),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return len(rows), err
}
