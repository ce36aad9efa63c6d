package sql

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/admin"
	"ebb/sql/approvals"
	"ebb/sql/calls"
	"ebb/sql/compactions"
	"ebb/sql/console"
	"ebb/sql/conversation"
	"ebb/sql/erasure"
	"ebb/sql/facts"
	"ebb/sql/files"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/limits"
	"ebb/sql/media"
	"ebb/sql/pg"
	"ebb/sql/retention"
	"ebb/sql/robots"
	"ebb/sql/schedules"
	"ebb/sql/search"
	"ebb/sql/spend"
	"ebb/sql/vectors"
)

var (
	_ sessions.Reporter           = (*conversation.Restarts)(nil)
	_ sessions.Elector            = (*conversation.Replicas)(nil)
	_ sessions.CompactionRequests = (*compactions.Requests)(nil)
	_ sessions.Expiry             = (*retention.Store)(nil)
	_ sessions.Schedules          = (*schedules.Store)(nil)
	_ sessions.Approvals          = (*approvals.Store)(nil)
	_ sessions.Eraser             = (*erasure.Store)(nil)
	_ memory.Upkeep               = (*facts.Upkeep)(nil)
	_ memory.Rights               = (*facts.Rights)(nil)
	_ memory.Erasures             = (*erasure.Store)(nil)
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

// Store is a store for each aggregate, all over one pool. A composition root gives each package those that it uses.
type Store struct {
	db    *pg.DB
	pages *Store // over the connections of the console; nil there

	Inbox       *conversation.Inbox
	Turns       *conversation.Turns
	Sessions    *conversation.Sessions
	Outbox      *conversation.Outbox
	Leases      *conversation.Leases
	Replicas    *conversation.Replicas
	Restarts    *conversation.Restarts
	Withheld    *conversation.Withheld
	Cards       *conversation.Cards
	Scopes      *conversation.Scopes
	Compactions *compactions.Store
	Jobs        *compactions.Jobs
	Requests    *compactions.Requests
	Ledger      *spend.Store
	Calls       *calls.Store
	Robots      *robots.Store
	Limits      *limits.Store
	Retention   *retention.Store
	Schedules   *schedules.Store
	Approvals   *approvals.Store
	Media       *media.Store
	Sent        *media.Sent
	Files       *files.Store
	Facts       *facts.Store
	Flushes     *facts.Flushes
	Digests     *facts.Digests
	FactUpkeep  *facts.Upkeep
	Rights      *facts.Rights
	Vectors     *vectors.Store
	Index       *index.Store
	Search      *search.Store
	Erasure     *erasure.Store
	Lists       *admin.Store
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
		db:    db,
		Inbox: inbox, Turns: conversation.NewTurns(db, logs), Sessions: conversation.NewSessions(db), Outbox: conversation.NewOutbox(db),
		Leases: conversation.NewLeases(db), Replicas: conversation.NewReplicas(db), Restarts: conversation.NewRestarts(db),
		Withheld: conversation.NewWithheld(db), Cards: conversation.NewCards(db), Scopes: conversation.NewScopes(db),
		Compactions: compactions.New(db), Jobs: compactions.NewJobs(db), Requests: compactions.NewRequests(db),
		Ledger: spend.New(db), Calls: calls.New(db), Robots: robots.New(db), Limits: limits.New(db), Retention: retention.New(db, people, logs),
		Schedules: schedules.New(db, inbox), Approvals: approvals.New(db, inbox), Media: media.New(db), Sent: media.NewSent(db), Files: files.New(db, people),
		Facts: kept, Flushes: facts.NewFlushes(db), Digests: facts.NewDigests(db), FactUpkeep: facts.NewUpkeep(db),
		Rights:  facts.NewRights(db, people, kept),
		Vectors: vectors.New(db), Index: index.New(db, logs),
		Search: search.New(db, people, reader, compare, logs, search.Options{
			Location: location, Embedder: o.Embedder, EmbedWeight: o.EmbedWeight,
			EmbedTimeout: o.EmbedTimeout, CompareTimeout: o.CompareTimeout,
		}),
		Erasure: erasure.New(db, people, logs), Lists: admin.New(db),
	}
}

// Ports returns the stores of conversations that a bot uses.
func (s *Store) Ports() sessions.Stores {
	return sessions.Stores{
		Inbox: s.Inbox, Turns: s.Turns, Sessions: s.Sessions, Outbox: s.Outbox, Cards: s.Cards, Leases: s.Leases, Compactions: s.Compactions,
		Jobs: s.Jobs, Ledger: s.Ledger, Limits: s.Limits, Scopes: s.Scopes, Withheld: s.Withheld,
	}
}

// Memory returns the stores of memory that a bot uses.
func (s *Store) Memory() memory.Stores {
	return memory.Stores{Facts: s.Facts, Search: s.Search, Flushes: s.Flushes, Digests: s.Digests}
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
		Sessions: s.Sessions, Compactions: s.Compactions, Flushes: s.Flushes, Facts: s.Facts, Rights: s.Rights, Ledger: s.Ledger, Lists: s.Lists,
	})
}

// Close waits for connections in use.
func (s *Store) Close() { s.db.Close() }
