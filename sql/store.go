package sql

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/admin"
	"ebb/sql/calls"
	"ebb/sql/compactions"
	"ebb/sql/console"
	"ebb/sql/conversation"
	"ebb/sql/erasure"
	"ebb/sql/facts"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/limits"
	"ebb/sql/pg"
	"ebb/sql/retention"
	"ebb/sql/schedules"
	"ebb/sql/search"
	"ebb/sql/spend"
	"ebb/sql/vectors"
)

var (
	_ sessions.Store            = (*Store)(nil)
	_ sessions.Reporter         = (*Store)(nil)
	_ sessions.Elector          = (*Store)(nil)
	_ memory.Store              = (*Store)(nil)
	_ memory.ConsolidationStore = (*Store)(nil)
	_ memory.Vectors            = (*Store)(nil)
	_ memory.Rights             = (*Store)(nil)
	_ sessions.Expiry           = (*Store)(nil)
	_ sessions.Schedules        = (*Store)(nil)
)

// Options says where the database is and how it is used.
type Options struct {
	// URL is a PostgreSQL connection string. It may hold a password and is never logged.
	URL string
	// DirectURL leads to the server itself where URL leads to a pooler, since LISTEN needs that. Empty: URL.
	DirectURL string
	// Pooler says that URL leads to a transaction pooler without prepared statements, as PgBouncer before 1.21.
	Pooler bool
	// MaxConns bounds the connections. The listening one, two for heartbeats and four for the console are extra. 0: 10.
	MaxConns int
	// LeaseTTL is the age at which a replica's heartbeat no longer keeps its leases. 0: 5 s.
	LeaseTTL time.Duration
	// Location is the time zone of the days in paths of memories. memory_get must get the same one. nil: UTC.
	Location *time.Location
	// Embedder enables search by meaning. nil: words alone.
	Embedder memory.Embedder
	// EmbedWeight is the weight of a hit by meaning against one by words, 0 to 1.
	EmbedWeight float64
	// EmbedTimeout and CompareTimeout bound the two steps of a search by meaning. 0: 300 ms and 200 ms.
	EmbedTimeout, CompareTimeout time.Duration
	// Configure changes the configuration of the pool, but not of heartbeats and the console. Tests trace statements with it. nil: as it is.
	Configure func(*pgxpool.Config)
}

type (
	inboxes       = conversation.Inbox
	turns         = conversation.Turns
	states        = conversation.Sessions
	outboxes      = conversation.Outbox
	leases        = conversation.Leases
	replicas      = conversation.Replicas
	accounts      = conversation.Restarts
	marks         = conversation.Withheld
	replyCards    = conversation.Cards
	groupScopes   = conversation.Scopes
	compactionLog = compactions.Store
	jobs          = compactions.Jobs
	requests      = compactions.Requests
	costs         = spend.Store
	callCounts    = calls.Store
	limitCounts   = limits.Store
	expiries      = retention.Store
	timetable     = schedules.Store
	factStores    = facts.Store
	flushes       = facts.Flushes
	digests       = facts.Digests
	factUpkeep    = facts.Upkeep
	factRights    = facts.Rights
	vectorStores  = vectors.Store
	indexes       = index.Store
	searches      = search.Store
	erasures      = erasure.Store
	lists         = admin.Store
)

// Store joins a store for each aggregate over one pool.
type Store struct {
	db    *pg.DB
	pages *Store // over the connections of the console; nil there

	*inboxes
	*turns
	*states
	*outboxes
	*leases
	*replicas
	*accounts
	*marks
	*replyCards
	*groupScopes
	*compactionLog
	*jobs
	*requests
	*costs
	*callCounts
	*limitCounts
	*expiries
	*timetable
	*factStores
	*flushes
	*digests
	*factUpkeep
	*factRights
	*vectorStores
	*indexes
	*searches
	*erasures
	*lists
}

// Open needs an up-to-date schema; see [Migrate]. It fails when the database does not answer within ctx.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := pg.Open(ctx, pg.Options{
		URL: o.URL, DirectURL: o.DirectURL, Pooler: o.Pooler, MaxConns: o.MaxConns, LeaseTTL: o.LeaseTTL,
		Configure: o.Configure,
	})
	if err != nil {
		return nil, err
	}
	logs := index.NewLogs(db)
	s := compose(db, logs, o)
	pages := db.ForPages()
	s.pages = compose(pages, logs.Over(pages), o)
	return s, nil
}

func compose(db *pg.DB, logs *index.Logs, o Options) *Store {
	location := cmp.Or(o.Location, time.UTC)
	people, compare := identity.New(db), vectors.NewComparer(db)
	reader := facts.NewReader(db, people, location)
	inbox, kept := conversation.NewInbox(db, people), facts.New(db, people, reader)
	return &Store{
		db:      db,
		inboxes: inbox, turns: conversation.NewTurns(db, logs), states: conversation.NewSessions(db), outboxes: conversation.NewOutbox(db),
		leases: conversation.NewLeases(db), replicas: conversation.NewReplicas(db), accounts: conversation.NewRestarts(db),
		marks: conversation.NewWithheld(db), replyCards: conversation.NewCards(db), groupScopes: conversation.NewScopes(db),
		compactionLog: compactions.New(db), jobs: compactions.NewJobs(db), requests: compactions.NewRequests(db),
		costs: spend.New(db), callCounts: calls.New(db), limitCounts: limits.New(db), expiries: retention.New(db, people, logs),
		timetable:  schedules.New(db, inbox),
		factStores: kept, flushes: facts.NewFlushes(db), digests: facts.NewDigests(db), factUpkeep: facts.NewUpkeep(db),
		factRights:   facts.NewRights(db, people, kept),
		vectorStores: vectors.New(db), indexes: index.New(db, logs),
		searches: search.New(db, people, reader, compare, logs, search.Options{
			Location: location, Embedder: o.Embedder, EmbedWeight: o.EmbedWeight,
			EmbedTimeout: o.EmbedTimeout, CompareTimeout: o.CompareTimeout,
		}),
		erasures: erasure.New(db, people, logs), lists: admin.New(db),
	}
}

// Ping reports whether the database answers and accepts writes; see [pg.DB.Ping].
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// clusterSweep spares the nodes of a cluster most of the sweeps, which ask all of them.
const clusterSweep = 5 * time.Second

// SweepEvery is the interval of sweeps over all sessions; 0: the usual one.
func (s *Store) SweepEvery() time.Duration {
	if s.db.Cluster {
		return clusterSweep
	}
	return 0
}

// ForPages returns the store over the connections of the console, for its reads; see [pg.DB.ForPages].
func (s *Store) ForPages() *Store { return s.pages }

// Pages returns the paged lists, logins and audit of the console, over its connections.
func (s *Store) Pages() *console.Store { return s.pages.Audit() }

// Audit returns the record of actions in chats and on the command line. They wait for no page of the console.
func (s *Store) Audit() *console.Store {
	return console.New(s.db, identity.New(s.db), console.Sources{
		Sessions: s.states, Compactions: s.compactionLog, Flushes: s.flushes, Facts: s.factStores, Rights: s.factRights, Costs: s.costs, Lists: s.lists,
	})
}

// Close waits for connections in use.
func (s *Store) Close() { s.db.Close() }
