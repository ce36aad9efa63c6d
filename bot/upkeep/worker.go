package upkeep

import (
	"time"

	"golang.org/x/sync/semaphore"

	"ebb/bot/llm"
	"ebb/bot/outbox"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/compaction/transcript"
	"ebb/memory"
	"ebb/memory/consolidate"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
)

// Config has the dependencies and settings of a [Worker].
type Config struct {
	Store    sessions.Store
	Memory   memory.Store
	Keeper   memory.MaintenanceStore     // nil: memory is not tidied
	Requests sessions.CompactionRequests // nil: none are stored
	Model    llm.Model
	Counter  *tokens.Counter
	Leases   *lease.Holder
	Views    *view.Builder

	Now       func() time.Time // the storage's clock
	Stopping  func() bool
	Languages wording.Languages // languages of notices, summaries and facts
	Location  *time.Location

	Current         *reload.Current // settings of compactions
	Remember        view.Remember
	DigestAt        string        // time of day in Location, such as 04:00; empty: no digests
	SummaryRetries  int           // requests for one summary in all
	SummaryBackoff  time.Duration // before the second request; each later pause grows by it
	CommitTimeout   time.Duration // one statement
	CompactDeadline time.Duration
	CompactNotify   bool // announces automatic compactions
}

func (c *Config) language(key sessions.Key) string {
	_, id := key.Conversation()
	return c.Languages.OfText(id, "")
}

// Worker does the upkeep of sessions and memory: flushes, compactions, digests and tidying.
type Worker struct {
	cfg          Config
	store        sessions.Store
	memory       memory.Store
	model        llm.Model
	counter      *tokens.Counter
	counted      *view.TokenCache
	leases       *lease.Holder
	views        *view.Builder
	languages    wording.Languages
	now          func() time.Time
	stopping     func() bool
	summarizer   summarize.Summarizer
	flusher      extract.Flusher
	consolidator consolidate.Consolidator
	locks        *locks
	slots        *semaphore.Weighted // limits upkeep over all sessions
	idle         idleBacklogs
	accuser      accuser

	turns       *serial.Mailboxes
	maintenance *serial.Mailboxes
	outbox      *outbox.Outbox
	stats       Stats
}

const maxConcurrent = 8

// Stats counts flushes, compactions and digests.
type Stats interface {
	Flushed(o extract.Outcome, err error)
	Compacted(e sessions.LogEntry)
	DigestEnded(outcome string) // "written", "nothing" or "failed"
	Withheld(row string, n int) // rows that are kept from a model from now on
}

// New returns a worker; [Worker.Connect] completes it.
func New(cfg Config) *Worker {
	u := &Worker{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, model: cfg.Model, counter: cfg.Counter, counted: cfg.Views.Counted,
		leases: cfg.Leases, views: cfg.Views, languages: cfg.Languages, now: cfg.Now, stopping: cfg.Stopping,
		locks: &locks{held: map[sessions.Key]chan struct{}{}}, slots: semaphore.NewWeighted(maxConcurrent),
	}
	u.accuser = accuser{u}
	u.summarizer = summarize.Summarizer{
		Model: llm.Plain{Model: cfg.Model, Kind: llm.KindSummary}, Counter: cfg.Counter,
		Location: cfg.Location, Retries: cfg.SummaryRetries, Backoff: cfg.SummaryBackoff,
	}
	scribe := transcript.Writer{Counter: cfg.Counter, Location: cfg.Location}
	u.flusher = extract.Flusher{
		Store: cfg.Memory, Model: llm.Plain{Model: cfg.Model, Kind: llm.KindFlush},
		Count: cfg.Counter.Count, Location: cfg.Location, TaskTTL: cfg.Remember.TaskTTL,
		Render: scribe.Write, Split: scribe.Split, Fence: transcript.Fence,
		Clean: transcript.Clean,
	}
	u.consolidator = consolidate.Consolidator{
		Store: cfg.Keeper, Model: llm.Plain{Model: cfg.Model, Kind: llm.KindConsolidation}, Fence: transcript.Fence,
		Count: cfg.Counter.Count,
	}
	return u
}

func (u *Worker) summaries(key sessions.Key) *summarize.Summarizer {
	s, set := u.summarizer, u.cfg.Current.For(key)
	s.Name, s.Context, s.Language = set.SummaryModel, set.Compaction.Window.Context, u.cfg.language(key)
	return &s
}

func (u *Worker) flushes(key sessions.Key) *extract.Flusher {
	f, set := u.flusher, u.cfg.Current.For(key)
	f.Name, f.Context, f.Language = set.SummaryModel, set.Compaction.Window.Context, u.cfg.language(key)
	f.Talk, f.Reads = func(events []sessions.Event) []sessions.Event { return u.accuser.readable(key, events) }, u.accuser.reads(key)
	return &f
}

func (u *Worker) consolidations(key sessions.Key) *consolidate.Consolidator {
	c, set := u.consolidator, u.cfg.Current.For(key)
	c.Name, c.Context, c.Language = set.SummaryModel, set.Compaction.Window.Context, u.cfg.language(key)
	return &c
}

// Connect is called once, before any other method.
func (u *Worker) Connect(turns, own *serial.Mailboxes, replies *outbox.Outbox, stats Stats) {
	u.turns, u.maintenance, u.outbox, u.stats = turns, own, replies, stats
}
