package upkeep

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction/summarize"
	"ebb/compaction/transcript"
	"ebb/memory"
	"ebb/memory/consolidate"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/serial"
)

// Index indexes logs and memories for the search.
type Index interface {
	// IndexBacklog indexes up to limit events and memories each. A number below limit means that none is left.
	IndexBacklog(ctx context.Context, limit int) (int, error)
}

// Options are the settings of a [Worker], and the parts that may be missing.
type Options struct {
	Tidying  memory.Upkeep // nil: memory is not tidied
	Index    Index         // together with Tidying
	Leads    func(context.Context) (bool, error)
	Requests sessions.CompactionRequests // nil: none are stored

	DigestAt       string        // time of day, such as 04:00; empty: no digests
	SummaryRetries int           // requests for one summary in all
	SummaryBackoff time.Duration // before the second request; each later pause grows by it
	CompactNotify  bool          // announces automatic compactions
}

// Worker does the upkeep of sessions and memory: flushes, compactions, digests and tidying.
type Worker struct {
	shared       *parts.Shared
	views        *view.Builder
	store        sessions.Stores
	memory       memory.Stores
	model        llm.Model
	opts         Options
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
	DigestEnded(outcome DigestOutcome)
	Withheld(kind WithheldKind, n int) // rows that are kept from a model from now on
}

// New returns a worker; [Worker.Connect] completes it.
func New(p *parts.Shared, views *view.Builder, store sessions.Stores, facts memory.Stores, model llm.Model, o Options) *Worker {
	u := &Worker{
		shared: p, views: views, store: store, memory: facts, model: model, opts: o,
		locks: &locks{held: map[sessions.Key][]chan struct{}{}}, slots: semaphore.NewWeighted(maxConcurrent),
	}
	u.accuser = accuser{u}
	u.summarizer = summarize.Summarizer{
		Model: model, Kind: llm.KindSummary, Counter: p.Counter,
		Location: p.Location, Retries: o.SummaryRetries, Backoff: o.SummaryBackoff,
	}
	scribe := transcript.Writer{Counter: p.Counter, Location: p.Location}
	u.flusher = extract.Flusher{
		Log: facts.Search, Facts: facts.Facts, Flushes: facts.Flushes, Model: model, Kind: llm.KindFlush,
		Count: p.Counter.Count, Location: p.Location, TaskTTL: views.Remember().TaskTTL,
		Render: scribe.Write, Split: scribe.Split, Fence: transcript.Fence,
		Clean: transcript.Clean,
	}
	u.consolidator = consolidate.Consolidator{
		Store: o.Tidying, Model: model, Fence: transcript.Fence,
		Count: p.Counter.Count,
	}
	return u
}

func (u *Worker) summaries(key sessions.Key) *summarize.Summarizer {
	s, set := u.summarizer, u.shared.Current.For(key)
	s.Name, s.Context, s.Language = set.SummaryModel, set.Compaction.Window.Context, u.shared.Language(key)
	return &s
}

func (u *Worker) flushes(key sessions.Key) *extract.Flusher {
	f, set := u.flusher, u.shared.Current.For(key)
	f.Name, f.Context, f.Language = set.SummaryModel, set.Compaction.Window.Context, u.shared.Language(key)
	f.Talk, f.Reads = func(events []sessions.Event) []sessions.Event { return u.accuser.readable(key, events) }, u.accuser.reads(key)
	return &f
}

func (u *Worker) consolidations(key sessions.Key) *consolidate.Consolidator {
	c, set := u.consolidator, u.shared.Current.For(key)
	c.Name, c.Context, c.Language = set.SummaryModel, set.Compaction.Window.Context, u.shared.Language(key)
	return &c
}

// Connect is called once, before any other method.
func (u *Worker) Connect(turns, own *serial.Mailboxes, replies *outbox.Outbox, stats Stats) {
	u.turns, u.maintenance, u.outbox, u.stats = turns, own, replies, stats
}
