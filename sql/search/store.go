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
	"ebb/sql/index"
	"ebb/sql/pg"
	"ebb/sql/vectors"
)

// Store finds events and memories.
type Store struct {
	db          *pg.DB
	identities  *identity.Store
	visible     *facts.Reader
	comparer    *vectors.Comparer
	logs        *index.Logs
	recent      *lru.Cache[string, []int64] // terms of texts that are not indexed yet, by text
	loc         *time.Location
	meaning     meaning
	embedWeight float64
}

const (
	maxCandidates = 2000    // newest memories compared by meaning
	maxOfTerm     = 200     // Events of a query term, each a page of the table. A term with more is common.
	maxPaired     = 4       // common terms paired
	recentEvents  = 500     // events at the log's end searched for common terms: other hits are the oldest
	maxShort      = 180     // terms of a short event: about 400 characters of text
	maxRecent     = 100     // short recent events
	maxSaid       = 200     // events by time or person alone
	maxUnindexed  = 500     // newest events that are not indexed yet
	maxKept       = 2000    // texts whose terms are kept for later searches
	maxKeptBytes  = 1000    // bytes of each
	maxNewChars   = 20_000  // characters of each
	maxNewBytes   = 500_000 // bytes of all
	besideBest    = 24      // hits whose neighbours are read
	narrowRange   = 4       // most source events of a memory that count as saying the same
)

type candidate struct {
	rank.Doc
	memory *dbsqlc.MemoriesReadableRow // nil for an event and a page
	page   *dbsqlc.FilePagesRow        // a kept file's; else nil
	nick   string                      // nick of an event's author
	sender sessions.UserID
}

type searching struct {
	store  *Store
	reader memory.Reader
	query  rank.Query
	from   memory.Source
	limit  int
	chars  int // characters of an event in a hit
	scope  *dbsqlc.SearchScopeRow
	last   int64               // place of the session's newest event
	newest map[int64]unindexed // by place: what the index does not have yet
	found  []candidate
	total  int           // as far as known
	common map[int64]int // approximate numbers of texts by key that is not read in full
}

func (x *searching) add(e dbsqlc.EventsBesideRow, keys []int64) {
	d := rank.Doc{
		Seq: e.Seq, At: e.CreatedAt, Assistant: e.Role == sessions.RoleAssistant, Keys: keys, Who: []string{string(e.SenderID)},
	}
	x.found = append(x.found, candidate{Doc: d, nick: e.SenderNick, sender: e.SenderID})
}

type unindexed struct {
	dbsqlc.EventsBesideRow
	keys []int64
}

type meaning struct {
	embedder memory.Embedder
	wait     time.Duration // for a query's vector
	compare  time.Duration // for the comparison

	known *lru.Cache[string, []float32] // by text of the query

	mu      sync.Mutex
	chance  [][]float32
	restEnd time.Time
}
