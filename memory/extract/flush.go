package extract

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"text/template"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Render writes the longest beginning of events that takes at most limit tokens, as data between fences, and returns their
// number. It writes at least one event, shortened if that is too long.
type Render func(events []sessions.Event, limit int) (text string, n int)

// Flusher draws facts out of the log.
type Flusher struct {
	Store memory.Store
	Model memory.Model
	// Name is the configured model that reads; empty for the default one, the chat's. If another model is named and
	// fails, the chat's model is asked once.
	Name   string
	Render Render
	Fence  memory.Fencer
	// Talk removes the events that are no part of the conversation, such as commands; nil: there are none.
	Talk func([]sessions.Event) []sessions.Event
	// Clean removes secrets from a text that a request may not hold. It runs before texts are cut, since a cut could
	// leave half of a credential. Nil: [sessions.Redact].
	Clean    func(text string) string
	Count    func(text string) int // tokens
	Language string                // zh or en
	Context  int                   // the window, in tokens
	// Location is the time zone that relative dates in facts are resolved in; nil: UTC.
	Location *time.Location
	// TaskTTL is how long the state of work is kept; 0: [DefaultTaskTTL].
	TaskTTL time.Duration
}

// FlushRequest says which flush is to be made.
type FlushRequest struct {
	Session sessions.Session
	Lease   sessions.Lease
	Through int64
	// Epoch marks the cycle as flushed; the session's own FlushEpoch leaves that mark as it is, for flushes that do not
	// stand for the cycle's one.
	Epoch int
	// Trigger is the cause, for the receipt: threshold, compaction, manual, new, idle, shutdown, debt, candidates.
	Trigger string
	// Budget bounds the tokens of its calls, requests and answers. After the part that reaches it the flush fails with
	// [ErrSpent]. 0: no bound.
	Budget int
}

// Outcome is the result of a flush.
type Outcome struct {
	Receipt memory.Receipt
	Facts   []memory.Draft
	Nothing bool // the model said so, or there was no event to read
	Through int64
	// Passed are the events that no model would read while it read others: nothing of them was saved, and the cursor went
	// past them.
	Passed []int64
	// Refused counts facts that the model tried to save and that are never kept, by kinds such as instruction. Each try
	// counts.
	Refused  map[string]int
	Calls    int
	Usage    sessions.Usage // usage of all calls
	Lost     sessions.Usage // usage of calls without a stored part
	Cost     float64
	LostCost float64
}

// String is the outcome in the compaction log.
func (o Outcome) String() string {
	text := "none"
	switch {
	case o.Receipt.Rows() > 0:
		text = fmt.Sprintf("saved %d, known %d", len(o.Receipt.Saved), len(o.Receipt.Duplicate))
	case o.Nothing:
		text = "nothing to save"
	}
	if n := len(o.Passed); n > 0 {
		text += fmt.Sprintf(", passed over %d", n)
	}
	return text
}

//go:embed flush.md
var promptText string

var promptTemplate = template.Must(template.New("flush.md").Parse(promptText))

// page is how many events are read from the log at a time.
const page = 500

// knownShown is the number of known memories that a flush shows the model, so that it saves new facts only.
const knownShown = 30

// The reasons of a flush that failed by itself; other errors are the model's.
var (
	// ErrUnusable says that no fact could be stored from the arguments of a call.
	ErrUnusable = errors.New("model called memory_save with nothing usable")
	// ErrSpent says that the flush used its budget before the end of its range.
	ErrSpent = errors.New("tokens of the day are used up")
	// ErrStorage says that the log could not be read, or facts could not be stored.
	ErrStorage = errors.New("storage of memory")
)

// Flush extracts the facts of the events after the session's flush cursor, up to d.Through. Each part of the range
// commits on its own: after an error the cursor stands behind the last part that did.
//
// A part that the model refuses is halved down to one event. That event is skipped once the model has read a later one,
// for then the model is not at fault. Without a later event the model must read a harmless sentence instead; if it read
// nothing at all, only after [sessions.Session.FlushFailures] in a row. See [Outcome.Passed].
func (f *Flusher) Flush(ctx context.Context, d FlushRequest) (Outcome, error) {
	at := d.Session.FlushedSeq
	r := &reading{Flusher: f, due: d, model: f.Name, limit: f.Context, end: at, out: Outcome{Nothing: true, Through: at, Refused: map[string]int{}}}
	err := r.read(ctx)
	r.out.Lost, r.out.LostCost = r.paid, r.paidCost
	return r.out, err
}
