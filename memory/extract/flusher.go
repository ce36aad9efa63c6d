package extract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Render writes the longest beginning of events within limit tokens as fenced data, and returns their number. A first
// event that is too long keeps only its ends: see [Flusher.Split].
type Render func(events []sessions.Event, limit int) (text string, n int)

// Log reads a session's log, and finds known facts. See [memory.Searcher].
type Log interface {
	Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error)
	Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error)
}

// Facts lists the facts in force. See [memory.Facts].
type Facts interface {
	Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error)
}

// Flushes stores the facts of a range. See [memory.Flushes].
type Flushes interface {
	Flush(ctx context.Context, l sessions.Lease, f memory.Flush) (memory.Receipt, error)
}

// Flusher draws facts from the log.
type Flusher struct {
	Log     Log
	Facts   Facts
	Flushes Flushes
	Model   llm.Model
	Kind    llm.Kind // flushes, or extraction apart from compactions
	// Name is the configured model that reads; empty for the chat's, which also replaces a failing one once.
	Name   string
	Render Render
	// Split returns the pieces of an event that is too long for a transcript of limit tokens, else the event.
	Split func(e sessions.Event, limit int) []sessions.Event
	Fence memory.Fencer
	// Reads identifies the model: see [memory.Reader].
	Reads sessions.ModelID
	// Talk removes events outside the conversation, such as commands.
	Talk func([]sessions.Event) []sessions.Event
	// Clean removes secrets before a cut could leave half of one.
	Clean    func(text string) string
	Count    func(text string) int // tokens
	Language string                // zh or en
	Context  int                   // the window, in tokens
	// Location is the zone of relative dates in facts; nil: UTC.
	Location *time.Location
	// TaskTTL is the lifetime of the state of work; 0: [DefaultTaskTTL].
	TaskTTL time.Duration
}

// FlushRequest describes a flush.
type FlushRequest struct {
	Session sessions.Session
	Lease   sessions.Lease
	Through int64
	// Epoch marks the cycle as flushed; the session's own FlushEpoch does not.
	Epoch   int
	Trigger memory.FlushTrigger
	// Budget bounds the tokens of requests and answers; 0: no bound. The part that reaches it is the last, with
	// [ErrSpent].
	Budget int
}

// Outcome is the result of a flush.
type Outcome struct {
	Receipt memory.Receipt // all parts together; a fact that the flush saved and found again is saved
	Nothing bool           // the model said so, or there was no event to read
	Through int64
	// Passed are skipped events, from which no fact was saved.
	Passed []int64
	// Faulted are those of Passed that the provider refused, with its error.
	Faulted map[int64]error
	// Refused counts, by kind such as instruction, tries to save facts that are never kept.
	Refused   map[string]int
	Calls     int
	Usage     sessions.Usage // usage of all calls
	Lost      sessions.Usage // usage of calls without a stored part
	Cost      float64
	LostCost  float64
	LostModel string // model of the last call without a stored part
}

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
	case len(o.Receipt.Saved)+len(o.Receipt.Duplicate) > 0:
		text = fmt.Sprintf(flushedSaved+" %d, "+flushedKnown+" %d", len(o.Receipt.Saved), len(o.Receipt.Duplicate))
	case o.Nothing:
		text = flushedNothing
	}
	if n := len(o.Passed); n > 0 {
		text += fmt.Sprintf(", "+flushedPassed+" %d", n)
	}
	return text
}

const page = 500

// Other errors are the model's.
var (
	// ErrUnusable says that no fact could be stored from the arguments of a call.
	ErrUnusable = errors.New("model called memory_save with nothing usable")
	// ErrSpent says that the flush used its budget before the end of its range.
	ErrSpent = errors.New("tokens of the day are used up")
	// ErrStorage says that the log could not be read, or facts could not be stored.
	ErrStorage = errors.New("storage of memory")
)

// flushRun is a queue of events, and a cursor behind it.
type flushRun struct {
	flusher  *Flusher
	due      FlushRequest
	model    string
	limit    int // tokens of a transcript; it shrinks when the model finds a request too long
	halved   int // times that it did
	out      Outcome
	paid     sessions.Usage // usage of calls without a stored part so far
	paidCost float64
	paidBy   string // model of the last of these calls

	page   []sessions.Event // events for the names of speakers
	queue  []sessions.Event // unread events of the page
	end    int64            // end of the page
	before []sessions.Event // the last message before the page: the page may answer it

	span int // bound of a part's events, for the next left events; 0: no bound
	left int
	bare bool // known facts are not shown: the provider refused a request with some

	proved     bool            // the model read something in this flush
	pending    []int64         // unread events with no read one behind them
	pendingErr error           // error of the first of them
	faulted    map[int64]error // pending events that the provider refused

	fresh []memory.Memory // facts that were stored from the part that is read again
	again int             // times that it was
	dense int64           // last event of the part that held more than a call does
	more  int             // calls for that part besides its first
	stale int             // full calls in a row without a new fact
}

type flushPart struct {
	request          llm.Request // instructions and data
	events           []sessions.Event
	known            string // the stored memories, fenced
	transcriptTokens int
}
