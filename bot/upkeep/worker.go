// Package upkeep does the work after the reply: it flushes facts into memory, compacts contexts, repeats owed flushes,
// writes digests and tidies the memory. Failures are logged and retried later; they never reach a group.
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

// Options are the settings of a [Worker], and the parts that may be missing.
type Options struct {
	Tidying  memory.Upkeep
	Index    Index
	Pages    Pages
	Leads    func(context.Context) (bool, error)
	Requests sessions.CompactionRequests

	DigestAt       string        // time of day, such as 04:00; empty: no digests
	SummaryRetries int           // requests for one summary in all
	SummaryBackoff time.Duration // before the second request; each later pause grows by it
	CompactNotify  bool          // announces automatic compactions
}

// Worker does the upkeep of sessions and memory. Its fields are the parts of it.
type Worker struct {
	shared *parts.Shared
	views  *view.Builder
	stores Stores
	model  llm.Model
	opts   Options

	locks     *locks
	slots     *semaphore.Weighted // limits upkeep over all sessions
	idle      *idleBacklogs
	charger   charger
	accuser   accuser
	flusher   *flusher
	compactor *compactor
	backlogs  backlogs
	overdue   overdue
	digester  digester
	tidier    tidier
}

const maxConcurrent = 8

// New returns a worker; [Worker.Connect] completes it.
func New(p *parts.Shared, views *view.Builder, stores Stores, model llm.Model, o Options) *Worker {
	return &Worker{
		shared: p, views: views, stores: stores, model: model, opts: o, locks: newLocks(), slots: semaphore.NewWeighted(maxConcurrent), idle: &idleBacklogs{},
		charger: charger{p, stores.Ledger},
	}
}

// Connect sets the mailboxes of turns and of upkeep, the outbox and the statistics, and puts the parts together. It is called once, before
// any other method.
func (u *Worker) Connect(turns, own *serial.Mailboxes, replies *outbox.Outbox, stats Stats) {
	p, s := u.shared, u.stores
	marks := marker{p, s.Jobs}
	u.accuser = accuser{
		shared: p, views: u.views, model: u.model, turns: s.Turns, store: s.Withheld, log: s.Log, pages: u.opts.Pages, tidying: u.opts.Tidying, locks: u.locks, charger: u.charger, stats: stats,
	}
	scribe := transcript.Writer{Counter: p.Counter, Location: p.Location}
	u.flusher = &flusher{
		shared: p, views: u.views, sessions: s.Sessions, store: s.Flushes, locks: u.locks, marker: marks, accuser: u.accuser, charger: u.charger, stats: stats,
		extracts: extract.Flusher{
			Log: s.Log, Facts: s.Facts, Flushes: s.Flushes, Model: u.model, Kind: llm.KindFlush, Count: p.Counter.Count, Location: p.Location,
			TaskTTL: u.views.Memory.Remember.TaskTTL, Render: scribe.Write, Split: scribe.Split, Fence: transcript.Fence, Clean: transcript.Clean,
		},
	}
	texts := summaries{p, summarize.Summarizer{
		Model: u.model, Kind: llm.KindSummary, Counter: p.Counter, Location: p.Location, Retries: u.opts.SummaryRetries, Backoff: u.opts.SummaryBackoff,
		Deadline: p.CompactDeadline,
	}}
	u.compactor = &compactor{
		shared: p, views: u.views, turns: s.Turns, jobs: s.Jobs, store: s.Compactions, log: s.Log, summaries: texts, locks: u.locks, marker: marks,
		accuser: u.accuser, flusher: u.flusher, charger: u.charger, outbox: replies, stats: stats, notify: u.opts.CompactNotify,
	}
	u.overdue = overdue{
		shared: p, views: u.views, store: s.Flushes, flusher: u.flusher, locks: u.locks, slots: u.slots, turns: turns, maintenance: own, outbox: replies,
	}
	u.backlogs = backlogs{p, u.views, s.Compactions, u.locks, u.idle, own}
	u.digester = digester{
		shared: p, views: u.views, sessions: s.Sessions, store: s.Digests, summaries: texts, slots: u.slots, marker: marks, accuser: u.accuser,
		charger: u.charger, stats: stats, at: u.opts.DigestAt,
	}
	u.tidier = tidier{
		shared: p, views: u.views, sessions: s.Sessions, store: u.opts.Tidying, index: u.opts.Index, slots: u.slots, accuser: u.accuser, charger: u.charger,
		consolidator: consolidate.Consolidator{Store: u.opts.Tidying, Model: u.model, Fence: transcript.Fence, Count: p.Counter.Count},
	}
}

// Lock excludes flushes and compactions of the session until unlock. The error is ctx's cause.
func (u *Worker) Lock(ctx context.Context, key sessions.Key) (unlock func(), err error) {
	return u.locks.lock(ctx, key)
}

// Busy implements turn.Upkeep.
func (u *Worker) Busy(key sessions.Key) bool { return u.locks.busy(key) }

// Charge counts the tokens of model calls that have no row of their own.
func (u *Worker) Charge(ctx context.Context, key sessions.Key, one sessions.Spending) {
	u.charger.charge(ctx, key, one)
}

// Compact shrinks a context: every automatic, manual or overflow compaction calls it, and it includes the flush.
// Without a commit both Error and the error have the reason, and only the row of the compaction log changes.
//
// asked is nil for an automatic compaction. needed is called under the session's lock; it returns the trigger, or ""
// where an earlier run made the room. waiting is the size of the question that waits, in the provider's tokens.
func (u *Worker) Compact(ctx context.Context, l sessions.Lease, asked *Request, waiting int, needed func(sessions.View) sessions.Trigger) (Compacted, error) {
	return u.compactor.compact(ctx, l, asked, waiting, needed)
}

// Inline implements turn.Upkeep by [Worker.Compact].
func (u *Worker) Inline(ctx context.Context, l sessions.Lease, waiting int, needed func(sessions.View) sessions.Trigger) error {
	_, err := u.compactor.compact(ctx, l, nil, waiting, needed)
	return err
}

// FlushAll flushes all events after the cursor. The cycle's mark stays, so that the flush before the next compaction
// still runs.
func (u *Worker) FlushAll(ctx context.Context, l sessions.Lease, trigger memory.FlushTrigger) (extract.Outcome, error) {
	return u.flusher.all(ctx, l, trigger)
}

// WakeBacklogs wakes the upkeep of quiet sessions over their threshold, and of those with rows under suspicion.
func (u *Worker) WakeBacklogs(ctx context.Context) { u.backlogs.wake(ctx) }

// FactsDue implements turn.Upkeep.
func (u *Worker) FactsDue(s sessions.Session) bool { return u.flusher.factsDue(s) }
