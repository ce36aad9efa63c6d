package erasure

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/pg"
)

// Arriving messages need connections too. A preview holds no place of an erasure.
const (
	maxErasing = 2
	maxPreview = 2
)

func repeatsNothing(string) bool { return false }

// Store erases, forgets and deletes.
type Store struct {
	db         *pg.DB
	identities *identity.Store
	logs       *index.Logs
	erasing    chan struct{} // semaphore of people being forgotten
	previewing chan struct{} // semaphore of previews
}

// New returns the erasures of a database.
func New(db *pg.DB, identities *identity.Store, logs *index.Logs) *Store {
	return &Store{db: db, identities: identities, logs: logs, erasing: make(chan struct{}, maxErasing), previewing: make(chan struct{}, maxPreview)}
}

// trimPeople removes the names that the log of a locked session no longer has, which it reads as a whole, like the erasure. Its caller
// ends the term of the lease, so that the writer of a turn counts on none of them.
func (s *Store) trimPeople(ctx context.Context, tx pgx.Tx, key sessions.Key) error {
	later := time.Now().AddDate(1, 0, 0)
	return s.db.Q.PeopleTrim(ctx, tx, &dbsqlc.PeopleTrimParams{SessionKey: key, SeenBefore: later, SaidBefore: later})
}

type eventErasure struct {
	store *Store
	goneContent
	tx      pgx.Tx
	row     *dbsqlc.Session
	seqs    []int64       // in order, each once
	aside   []int64       // messages without a place
	draft   *summaryDraft // nil when no placed event is erased
	who     person        // zero when only events are erased
	vectors int
	done    sessions.Erased
}

// goneContent is the content that must not be repeated, besides that of erased events.
type goneContent struct {
	// It is nil when the facts go with the events; otherwise the caller deletes them.
	repeats func(string) bool
	own     bool     // repeats finds only words, which others may have said too
	facts   []string // memories from the events
}

type person struct {
	ids   []string
	nicks []string
}

func (p person) is(id sessions.UserID) bool { return slices.Contains(p.ids, string(id)) }

// A draft is made before the session is locked: a comparison takes seconds for a long range, and a lock would block
// turns.
type summaryDraft struct {
	version int      // version of the view
	facts   []string // in order
	left    map[int64]healedSummary
	final   bool // Summaries that changed since are emptied.
}

type healedSummary struct {
	seqs   []int64
	text   string
	tokens int
}
