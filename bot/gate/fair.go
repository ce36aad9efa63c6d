package gate

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// FairSemaphore serves waiters round-robin by conversation, and within a conversation by session. Places are free only
// while the queue is empty.
type FairSemaphore struct {
	over <-chan struct{} // closed: waiting ends with ErrStop; nil: never

	mu   sync.Mutex
	free int
	line ring
}

// NewFairSemaphore ends all waiting when over is closed; nil never does.
func NewFairSemaphore(places int, over <-chan struct{}) *FairSemaphore {
	return &FairSemaphore{free: places, over: over}
}

// TryEnter takes a place if one is free. leave is called once.
func (f *FairSemaphore) TryEnter() (leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.take() {
		return nil, false
	}
	return f.leave, true
}

// take needs the lock.
func (f *FairSemaphore) take() bool {
	if f.free == 0 {
		return false
	}
	f.free--
	return true
}

// Enter waits for a place; leave is called once. The error is ctx's cause, or [llm.ErrStop] at a stop.
func (f *FairSemaphore) Enter(ctx context.Context, who waiter) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	if f.take() {
		f.mu.Unlock()
		return f.leave, nil
	}
	t := f.line.join(who)
	f.mu.Unlock()
	select {
	case <-t.given:
		return f.leave, nil
	case <-f.over:
		err = llm.ErrStop
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !t.quit() {
		f.pass() // the place was given at the same moment
	}
	return nil, err
}

func (f *FairSemaphore) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass()
}

// pass gives a place to the next waiter, or frees it. The lock is held.
func (f *FairSemaphore) pass() {
	if t := f.line.next(); t != nil {
		close(t.given)
		return
	}
	f.free++
}

func (f *FairSemaphore) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.line.size
}

// ring is a queue of named rings, or of tickets. A served element moves to the end.
type ring struct {
	name  any
	in    *ring // the enclosing ring; nil for the outermost
	at    *list.Element
	line  list.List // entries are *ring; *ticket in the innermost
	named map[any]*ring
	size  int // tickets in all rings below
}

type ticket struct {
	given chan struct{} // closed when the place is given
	in    *ring
	at    *list.Element // nil when it has left its ring
}

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

// quit also removes empty rings. It reports whether the ticket was in a ring.
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

type conversation struct {
	robot sessions.RobotCode
	id    sessions.ConversationID
}

type waiter struct {
	conversation conversation
	session      sessions.Key
}

// WaiterOf counts sessions of single members to their group's conversation.
func WaiterOf(key sessions.Key) waiter {
	robot, id := key.Conversation()
	return waiter{conversation{robot, id}, key}
}

const (
	upkeepShare  = 4 // upkeep has a quarter of the places
	TurnsPerCall = 4 // turns in progress for each place, because some run tools or commit
)

// Gate bounds the concurrent calls of a model. A place is held for a single call, so that a turn that compacts first
// never waits for a place of its own.
type Gate struct {
	model  llm.Model
	calls  *FairSemaphore
	upkeep *FairSemaphore // the share of calls that upkeep may use

	metrics *Metrics // nil before the bot runs
	watch   func(context.Context, llm.Request, []llm.Part)
	late    func(context.Context, llm.Part)
}

// NewGate allows at most the given number of concurrent calls.
func NewGate(m llm.Model, most int) *Gate {
	return &Gate{model: m, calls: NewFairSemaphore(most, nil), upkeep: NewFairSemaphore(max(1, most/upkeepShare), nil)}
}

// Report counts calls in m from now on, passes each with its parts to watch, and to late the usage of requests that went on after
// their call.
func (g *Gate) Report(m *Metrics, watch func(context.Context, llm.Request, []llm.Part), late func(context.Context, llm.Part)) {
	g.metrics, g.watch, g.late = m, watch, late
}

// Waiting returns the number of calls that wait for a place.
func (g *Gate) Waiting() int { return g.calls.waiting() + g.upkeep.waiting() }

// Generate waits for a place first. All upkeep together counts as one conversation.
func (g *Gate) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	session := llm.SessionOf(ctx)
	who := WaiterOf(session)
	if session == "" {
		leave, err := g.upkeep.Enter(ctx, who)
		if err != nil {
			return llm.Response{}, noPlace(err)
		}
		defer leave()
	}
	leave, err := g.calls.Enter(ctx, who)
	if err != nil {
		return llm.Response{}, noPlace(err)
	}
	defer leave()
	if g.late != nil {
		r.Late = func(p llm.Part) {
			g.metrics.paid(p, cmp.Or(r.Kind, llm.KindTurn))
			g.late(ctx, p)
		}
	}
	began := time.Now()
	resp, err := g.model.Generate(ctx, r)
	meterOf(ctx).add(resp.Usage)
	if g.metrics != nil {
		g.metrics.call(r, resp, err, time.Since(began))
		g.watch(ctx, r, resp.Parts)
	}
	return resp, err
}

func noPlace(err error) error {
	return fmt.Errorf("wait for a place among the calls of the model: %w", err)
}
