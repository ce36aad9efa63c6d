package conversation

import (
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

const (
	maxTailBytes = 16 << 20 // for all tails together
	eventBytes   = 1000     // for an event besides its texts
)

// tails remembers the raw events that this process showed in the last turns, so that a turn reads those since then alone. A tail is of one
// version of the view, which each change of a shown text ends, and of one term, which an erasure ends.
type tails struct {
	mu    sync.Mutex
	of    *lru.Cache[sessions.Key, *tail]
	bytes int
}

// tail does not change.
type tail struct {
	term    int64
	version int
	events  []sessions.Event
	bytes   int
}

func newTails() *tails {
	t := &tails{}
	var err error
	if t.of, err = lru.NewWithEvict(maxRemembered, func(_ sessions.Key, old *tail) { t.bytes -= old.bytes }); err != nil {
		panic(err) // the size is a constant
	}
	return t
}

// get returns a tail without events if none is known.
func (t *tails) get(l sessions.Lease) *tail {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, ok := t.of.Get(l.Key); ok && one.term == l.Term {
		return one
	}
	return &tail{version: -1}
}

// put remembers the events of a version: those of known, and more behind them. No one else appends to those of known, since a tail is
// replaced once.
func (t *tails) put(l sessions.Lease, version int, known *tail, events []sessions.Event) {
	more := events[len(known.events):]
	one := &tail{term: l.Term, version: version, bytes: known.bytes}
	for _, e := range more {
		one.bytes += eventBytes + len(e.Content)
		for _, c := range e.ToolCalls {
			one.bytes += len(c.Arguments)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, ok := t.of.Peek(l.Key); !ok || now != known {
		one.events = slices.Clone(events)
	} else if one.events = append(known.events, more...); len(more) == 0 {
		return
	}
	t.of.Remove(l.Key)
	if one.bytes > maxTailBytes/8 {
		return
	}
	t.bytes += one.bytes
	t.of.Add(l.Key, one)
	for t.bytes > maxTailBytes {
		t.of.RemoveOldest()
	}
}

// continueWith returns the tail if read events continue it in a version of the view, or one without events.
func (t *tail) continueWith(version int, read []dbsqlc.TurnTailRow) *tail {
	if version == t.version && (len(read) == 0 || pg.OrZero(read[0].Seq) > t.last()) {
		return t
	}
	return &tail{}
}

// last is the place of the last event, or 0.
func (t *tail) last() int64 { return lastPlace(t.events) }

func lastPlace(events []sessions.Event) int64 {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Seq
}
