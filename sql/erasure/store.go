package erasure

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// maxErasing is the number of people that one process forgets or previews at a time. Arriving messages need connections
// too.
const maxErasing = 2

func never(string) bool { return false }

// Store erases events, forgets facts, messages and people, and deletes sessions.
type Store struct {
	*pg.DB
	identities *identity.Store
	erasing    chan struct{} // a semaphore of people that are being forgotten
}

// New returns the erasures of a database.
func New(db *pg.DB, identities *identity.Store) *Store {
	return &Store{DB: db, identities: identities, erasing: make(chan struct{}, maxErasing)}
}

// erasure is the state of one erasure.
type erasure struct {
	*Store
	unsaid
	tx      pgx.Tx
	row     *dbsqlc.Session
	seqs    []int64 // in order, each once
	aside   []int64 // ids of messages without a place, each once
	draft   *draft  // remaining texts of summaries; nil when no event with a place is erased
	who     person  // the forgotten person; zero when only events are erased
	vectors int
	done    sessions.Erased
}

// unsaid is the content that must not be repeated, besides that of erased events.
type unsaid struct {
	// repeats reports whether a text repeats it, when the caller deletes the facts; nil when facts go with the events.
	repeats func(string) bool
	own     bool     // repeats finds only the words of the erased messages, which others may have said too
	facts   []string // memories from the events
}

// person is a member with all names.
type person struct {
	ids   []string
	nicks []string
}

func (p person) is(id sessions.UserID) bool { return slices.Contains(p.ids, string(id)) }

// draft is an erasure's plan, made before it locks the session: the remaining text of each summary. A comparison takes
// seconds for a long range, and a lock would block the session's turns meanwhile.
type draft struct {
	version int      // version of the view
	facts   []string // in order
	left    map[int64]healed
	final   bool // summaries that changed since are emptied
}

// healed is a summary without the erased content.
type healed struct {
	seqs   []int64 // the erased events of its range
	text   string
	tokens int
}
