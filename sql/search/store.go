package search

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/facts"
	"ebb/sql/identity"
	"ebb/sql/pg"
	"ebb/sql/vectors"
)

// Store finds events and memories.
type Store struct {
	*pg.DB
	identities  *identity.Store
	visible     *facts.Reader
	comparer    *vectors.Comparer
	loc         *time.Location
	meaning     meaning
	embedWeight float64
}

const (
	maxCandidates = 2000    // memories compared by meaning, the newest first
	maxOfTerm     = 200     // Events read for one query term, each a page of the table. A term with more is common.
	maxPaired     = 4       // common terms searched for in pairs
	recentEvents  = 500     // events at the log's end that are searched for common terms: other hits are the oldest ones
	maxShort      = 1500    // bytes of the terms of a short event: about 400 characters of text
	maxRecent     = 100     // short recent events that are read
	maxSaid       = 200     // events read only for their time or person
	maxUnindexed  = 500     // events without terms that one search reads
	maxNewChars   = 20_000  // characters read of each of these
	maxNewBytes   = 500_000 // bytes read of all of them
	besideBest    = 24      // hits whose neighbours are read
	narrowRange   = 4       // maximum source events of a memory that count as saying the same
)

type candidate struct {
	rank.Doc
	memory *dbsqlc.MemoriesReadableRow // nil for an event
	nick   string                      // nick of an event's author
	sender sessions.UserID
}

type searching struct {
	*Store
	reader memory.Reader
	query  rank.Query
	from   memory.Source
	limit  int
	chars  int   // characters of an event in a hit
	last   int64 // place of the session's newest event
	found  []candidate
	total  int           // as far as known
	common map[int64]int // approximate number of texts by key, for keys that are not read in full
}

func (x *searching) add(e dbsqlc.EventsBesideRow) {
	d := rank.Doc{
		Seq: pg.OrZero(e.Seq), At: e.CreatedAt, Assistant: e.Role == sessions.RoleAssistant, Keys: e.Terms, Who: []string{string(e.SenderID)},
	}
	x.found = append(x.found, candidate{Doc: d, nick: e.SenderNick, sender: e.SenderID})
}

type meaning struct {
	embedder memory.Embedder
	wait     time.Duration // for a query's vector
	compare  time.Duration // for the comparison

	known *lru.Cache[string, []float32] // vectors of queries by text

	mu      sync.Mutex
	chance  [][]float32 // vectors of the unrelated texts
	restEnd time.Time
}
