package llm

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"ebb/sessions"
)

// FairSemaphore hands out a fixed number of places. Where none is free, those who ask wait in a line in which conversations take
// turns, and within a conversation its sessions: whoever asks for much waits longer, and nobody else does. A place that
// is given back goes to the next at once; one is free only while nobody waits.
type FairSemaphore struct {
	over <-chan struct{} // closed: nobody waits any more; nil: never

	mu   sync.Mutex
	Free int
	line ring
}

func NewFairSemaphore(places int, over <-chan struct{}) *FairSemaphore {
	return &FairSemaphore{Free: places, over: over}
}

// Enter waits for a place and returns what gives it back, to be called once. The error is ctx's cause, or ErrStop where
// the waiting is over.
func (f *FairSemaphore) Enter(ctx context.Context, who waiter) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	if f.Free > 0 {
		f.Free--
		f.mu.Unlock()
		return f.leave, nil
	}
	t := f.line.join(who)
	f.mu.Unlock()
	select {
	case <-t.given:
		return f.leave, nil
	case <-f.over:
		err = ErrStop
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !t.quit() {
		f.pass() // it was given at the same moment
	}
	return nil, err
}

func (f *FairSemaphore) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass()
}

// pass gives a place to whoever is next, or keeps it. The lock is held.
func (f *FairSemaphore) pass() {
	if t := f.line.next(); t != nil {
		close(t.given)
		return
	}
	f.Free++
}

// waiting is how many wait for a place.
func (f *FairSemaphore) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.line.size
}

// ring is a line of rings by their names, or of tickets. Who is served goes to its end.
type ring struct {
	name  any
	in    *ring // the one that this stands in; nil for the outermost
	at    *list.Element
	line  list.List // of *ring, or in the innermost of *ticket
	named map[any]*ring
	size  int // tickets in it, in all
}

// ticket is what somebody waits in line with.
type ticket struct {
	given chan struct{} // closed when it is theirs
	in    *ring
	at    *list.Element // nil when it stands in none any more
}

// join adds a ticket at the end of the ring of its session, in that of its conversation.
func (r *ring) join(who waiter) *ticket {
	r.size++
	for _, name := range []any{who.conversation, who.session} {
		inner := r.named[name]
		if inner == nil {
			inner = &ring{name: name, in: r}
			inner.at = r.line.PushBack(inner)
			if r.named == nil {
				r.named = map[any]*ring{}
			}
			r.named[name] = inner
		}
		r = inner
		r.size++
	}
	t := &ticket{given: make(chan struct{}), in: r}
	t.at = r.line.PushBack(t)
	return t
}

// next takes the ticket whose turn it is out of the ring; nil where nobody waits.
func (r *ring) next() *ticket {
	for r.size > 0 {
		front := r.line.Front()
		r.line.MoveToBack(front)
		switch who := front.Value.(type) {
		case *ring:
			r = who
		case *ticket:
			who.quit()
			return who
		}
	}
	return nil
}

// quit takes the ticket out of its ring, and rings in which nobody waits any more out of theirs. It reports whether it
// was in one.
func (t *ticket) quit() bool {
	if t.at == nil {
		return false
	}
	t.in.line.Remove(t.at)
	t.at = nil
	for r := t.in; r != nil; r = r.in {
		if r.size--; r.size == 0 && r.in != nil {
			r.in.line.Remove(r.at)
			delete(r.in.named, r.name)
		}
	}
	return true
}

// conversation is one conversation of one robot.
type conversation struct {
	robot sessions.RobotCode
	id    sessions.ConversationID
}

// waiter is who a place is for.
type waiter struct {
	conversation conversation
	session      sessions.Key
}

// WaiterOf is who waits for a session: members of a group who have sessions of their own share its conversation.
func WaiterOf(key sessions.Key) waiter {
	robot, id := key.Conversation()
	return waiter{conversation{robot, id}, key}
}

type waiterKey struct{}

// WithWaiter marks what is done under ctx as done for people of the session who wait for it. What is not marked is upkeep.
func WithWaiter(ctx context.Context, key sessions.Key) context.Context {
	return context.WithValue(ctx, waiterKey{}, WaiterOf(key))
}

// Places for the calls of a model, and for turns.
const (
	upkeepShare  = 4 // upkeep has a quarter of the places for calls
	TurnsPerCall = 4 // turns in hand for each place: the others run tools, commit, or wait for their next call
)

// Gate is a model of which only so many calls are under way at once. A place is held for a single call, so that a turn
// which must compact before it goes on never waits for a place that it holds itself.
type Gate struct {
	model  Model
	Calls  *FairSemaphore
	Upkeep *FairSemaphore // of the places for calls, those that upkeep may have

	metrics *Metrics // nil before the bot runs
}

func NewGate(m Model, most int) *Gate {
	return &Gate{model: m, Calls: NewFairSemaphore(most, nil), Upkeep: NewFairSemaphore(max(1, most/upkeepShare), nil)}
}

// Report has the calls counted from now on.
func (g *Gate) Report(m *Metrics) { g.metrics = m }

// Waiting is how many calls wait for a place.
func (g *Gate) Waiting() int { return g.Calls.waiting() + g.Upkeep.waiting() }

// Generate waits for a place and asks the model. All upkeep together is one more conversation in the line.
func (g *Gate) Generate(ctx context.Context, r Request) (Response, error) {
	who, people := ctx.Value(waiterKey{}).(waiter)
	if !people {
		leave, err := g.Upkeep.Enter(ctx, who)
		if err != nil {
			return Response{}, noPlace(err)
		}
		defer leave()
	}
	leave, err := g.Calls.Enter(ctx, who)
	if err != nil {
		return Response{}, noPlace(err)
	}
	defer leave()
	began := time.Now()
	resp, err := g.model.Generate(ctx, r)
	if g.metrics != nil {
		g.metrics.call(r, resp, err, time.Since(began))
	}
	return resp, err
}

func noPlace(err error) error {
	return fmt.Errorf("wait for a place among the calls of the model: %w", err)
}
