package extract

import (
	_ "embed"
	"errors"
	"fmt"
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

// The words of an outcome. A count follows some of them.
const (
	flushedNone    = "none"
	flushedSaved   = "saved"
	flushedKnown   = "known"
	flushedNothing = "nothing to save"
	flushedPassed  = "passed over"
)

// String is the outcome in the compaction log.
func (o Outcome) String() string {
	text := flushedNone
	switch {
	case o.Receipt.Rows() > 0:
		text = fmt.Sprintf(flushedSaved+" %d, "+flushedKnown+" %d", len(o.Receipt.Saved), len(o.Receipt.Duplicate))
	case o.Nothing:
		text = flushedNothing
	}
	if n := len(o.Passed); n > 0 {
		text += fmt.Sprintf(", "+flushedPassed+" %d", n)
	}
	return text
}

// page is how many events are read from the log at a time.
const page = 500

// The reasons of a flush that failed by itself; other errors are the model's.
var (
	// ErrUnusable says that no fact could be stored from the arguments of a call.
	ErrUnusable = errors.New("model called memory_save with nothing usable")
	// ErrSpent says that the flush used its budget before the end of its range.
	ErrSpent = errors.New("tokens of the day are used up")
	// ErrStorage says that the log could not be read, or facts could not be stored.
	ErrStorage = errors.New("storage of memory")
)

// reading is one flush under way. The events to come stand in a queue; the cursor follows behind.
type reading struct {
	*Flusher
	due      FlushRequest
	model    string // that is asked
	limit    int    // tokens of a transcript; it shrinks when the model finds a request too long
	halved   int    // how often it did
	out      Outcome
	paid     sessions.Usage // usage of calls without a stored part so far
	paidCost float64        // cost of those calls

	page   []sessions.Event // events for the names of speakers
	queue  []sessions.Event // those of the page that are not read yet
	end    int64            // end of the page
	before []sessions.Event // the last message before the page: the page may answer it

	span int // how many events a part may hold, for as many events as left says; 0: any number
	left int
	bare bool // known facts are not shown: the provider refused a request that held some

	proved     bool    // the model read something in this flush
	pending    []int64 // events that it did not read, with none behind them that it did
	pendingErr error   // error of the first of them

	fresh []memory.Memory // facts that were stored from the part that is read again
	again int             // how often it was
	dense int64           // the last event of the part that held more than a call does
	more  int             // calls that such a part took besides its first
	stale int             // full calls in a row without a new fact of it
}

// part is a request that reads a beginning of the events to come.
type part struct {
	memory.CallRequest
	events           []sessions.Event
	known            string // fenced: the stored memories
	transcriptTokens int    // tokens of the transcript
}
