package upkeep

import (
	"context"
	"time"

	"ebb/memory"
	"ebb/memory/extract"
	"ebb/sessions"
)

// Turns reads the views of sessions. See [sessions.Turns].
type Turns interface {
	Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error)
}

// Sessions reads sessions without their views. See [sessions.Directory].
type Sessions interface {
	Session(ctx context.Context, key sessions.Key) (sessions.Session, error)
}

// Marks records that upkeep runs. See [sessions.Jobs].
type Marks interface {
	MarkUpkeep(ctx context.Context, l sessions.Lease, limit time.Duration) error
}

// Jobs stages the summaries of compactions. See [sessions.Jobs].
type Jobs interface {
	Marks
	Job(ctx context.Context, key sessions.Key) (sessions.Job, error)
	OpenJob(ctx context.Context, l sessions.Lease, j sessions.Job) (sessions.Source, error)
	StageJob(ctx context.Context, l sessions.Lease, j sessions.Job, result []byte, spent sessions.Spending) error
}

// Compactions stores compactions and their log. See [sessions.Compactor].
type Compactions interface {
	Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) (sessions.Compacted, error)
	Rewrite(ctx context.Context, l sessions.Lease, r sessions.Rewritten) error
	Log(ctx context.Context, l sessions.Lease, e sessions.LogEntry) error
	Backlogs(ctx context.Context, owner sessions.ReplicaID, least int, after sessions.Key, limit int) ([]sessions.Session, error)
}

// Ledger counts spending. See [sessions.Ledger].
type Ledger interface {
	Charge(ctx context.Context, key sessions.Key, s sessions.Spending) error
}

// Withheld keeps rows from models. See [sessions.Withholder].
type Withheld interface {
	Withhold(ctx context.Context, l sessions.Lease, w sessions.Withholding) error
}

// Flushes stores the facts of ranges, and lists the ranges that are owed. See [memory.Flushes].
type Flushes interface {
	extract.Flushes
	Owe(ctx context.Context, l sessions.Lease, d memory.Debt) error
	Owed(ctx context.Context, key sessions.Key) (memory.Debt, error)
	DebtsDue(ctx context.Context, owner sessions.ReplicaID, after memory.FlushCandidate, limit int) ([]memory.OwedFlush, error)
	Idle(ctx context.Context, owner sessions.ReplicaID, idle time.Duration, after memory.FlushCandidate, limit int) ([]memory.FlushCandidate, error)
}

// Digests stores the digests of days. See [memory.Digests].
type Digests interface {
	DigestsDue(ctx context.Context, owner sessions.ReplicaID, days []memory.Day, after memory.DigestDue) ([]memory.DigestDue, error)
	DigestEvents(ctx context.Context, d memory.DigestDue, after int64, limit int) ([]sessions.Event, error)
	StoreDigest(ctx context.Context, l sessions.Lease, d memory.Digest) (int64, error)
	PutOffDigest(ctx context.Context, l sessions.Lease, f memory.DigestFailure) error
}

// Index indexes logs and memories for the search.
type Index interface {
	// IndexBacklog indexes up to limit events and memories each. A number below limit means that none is left.
	IndexBacklog(ctx context.Context, limit int) (int, error)
}

// Pages are those of kept files. See package sql/files.
type Pages interface {
	// Page returns a page of a file, with its title before its text. It is [sessions.ErrNotFound] for one that is gone.
	Page(ctx context.Context, key sessions.Key, page sessions.PageID) (string, error)
	// WithholdPages marks pages that a model refuses.
	WithholdPages(ctx context.Context, key sessions.Key, w sessions.Withholding) error
}

// Stores are those that upkeep uses.
type Stores struct {
	Turns       Turns
	Sessions    Sessions
	Jobs        Jobs
	Compactions Compactions
	Ledger      Ledger
	Withheld    Withheld
	Log         extract.Log
	Facts       extract.Facts
	Flushes     Flushes
	Digests     Digests
}

// Stats counts flushes, compactions and digests.
type Stats interface {
	Flushed(o extract.Outcome, err error)
	Compacted(e sessions.LogEntry)
	DigestEnded(outcome DigestOutcome)
	Withheld(kind WithheldKind, n int) // rows that are kept from a model from now on
}

// DigestOutcome is the end of a day's digest.
type DigestOutcome string

// The outcomes of digests.
const (
	DigestWritten DigestOutcome = "written"
	DigestNothing DigestOutcome = "nothing"
	DigestFailed  DigestOutcome = "failed"
)

// WithheldKind is the kind of rows that are kept from a model.
type WithheldKind string

// The kinds of withheld rows.
const (
	WithheldMessage WithheldKind = "message"
	WithheldSummary WithheldKind = "summary"
	WithheldFact    WithheldKind = "fact"
	WithheldPage    WithheldKind = "page"
)

// The triggers of compactions that no policy decides.
const (
	TriggerManual  sessions.Trigger = "manual"
	TriggerUndo    sessions.Trigger = "undo"
	TriggerRewrite sessions.Trigger = "rewrite" // one summary is written again
)
