package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// errPanic stands for a panic as the end of a turn.
var errPanic = errors.New("panic")

// blamed reports whether the end of a turn counts as an attempt at its messages: a panic, or data that the storage refuses.
// A lost lease, a stop and trouble of the storage count nothing. The death of a process is counted by the storage, see
// [sessions.Store.Begin]; the failure of a model is an answer, and ends no turn.
func blamed(end error) bool {
	return errors.Is(end, errPanic) || errors.Is(end, sessions.ErrRefused)
}

// attempt runs a turn that has begun, and settles what its end says of the messages.
func (r *Runner) attempt(ctx context.Context, l sessions.Lease, view sessions.View) (more bool, err error) {
	if len(view.Pending) == 0 {
		return false, nil
	}
	taken, end := view.Pending, errPanic
	defer func() { // also while a panic passes
		if end != nil {
			err = errors.Join(err, r.abandon(ctx, l, taken, end))
		}
	}()
	t := r.Open(l, view)
	taken = t.Asked
	more, err = r.take(ctx, t)
	end = err
	return more, err
}

// abandon tells the storage that a turn ended without a commit, and waits for one that is away.
func (r *Runner) abandon(ctx context.Context, l sessions.Lease, taken []sessions.Event, end error) error {
	var guilty []int64
	for _, e := range taken {
		if blamed(end) {
			guilty = append(guilty, e.ID)
		}
	}
	err := r.persist(ctx, "Turn not abandoned, trying again", func(one context.Context) error {
		return r.store.Abandon(one, l, guilty)
	})
	if err != nil {
		return fmt.Errorf("abandon turn of session %s: %w", l.Key, err)
	}
	return nil
}

// begin waits for a place and opens a turn. A suspect also waits until no other one runs; nothing is marked before. leave
// gives the places back, and is never nil.
func (r *Runner) begin(ctx context.Context, l sessions.Lease) (v sessions.View, leave func(), err error) {
	v, leave, err = r.beginBy(ctx, l, r.store.Begin)
	if err != nil || v.Suspect == 0 {
		return v, leave, err
	}
	leave()
	free, err := r.suspects.Enter(ctx, v.Suspect)
	if err != nil {
		return v, func() {}, err
	}
	v, place, err := r.beginBy(ctx, l, r.store.BeginAlone)
	if v.Suspect == 1 {
		time.AfterFunc(SuspectAlone, free)
	}
	return v, func() { place(); free() }, err
}

func (r *Runner) beginBy(
	ctx context.Context, l sessions.Lease, open func(context.Context, sessions.Lease, int) (sessions.View, error),
) (v sessions.View, leave func(), err error) {
	if leave, err = r.inHand.Enter(ctx, llm.WaiterOf(l.Key)); err != nil {
		return v, func() {}, llm.ErrStop
	}
	if !r.leases.Trusted() { // it may have been a long wait
		return v, leave, ErrHeartbeat
	}
	// A statement that hangs takes a turn's place from nobody for long.
	one, stop := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer stop()
	v, err = open(one, l, r.cfg.MaxMerged)
	return v, leave, err
}

// SuspectAlone is how long a message with one counted attempt keeps other suspects waiting. Most of those are innocent, and
// a model that hangs must not hold all of them up. With a second attempt counted it is alone to the end of its turn.
const SuspectAlone = 10 * time.Second

// Suspects lets the turns of suspects run one at a time: see [sessions.Store.Begin]. The least suspected come first, so that
// the innocent are answered before the next crash.
type Suspects struct {
	Over <-chan struct{} // closed: nobody waits any more

	mu    sync.Mutex
	taken bool
	line  []*suspect // by count, then by arrival
}

type suspect struct {
	count int
	given chan struct{}
}

// Enter waits for the place and returns what gives it back, once, however often it is called. The error is ctx's cause, or
// ErrStop where the waiting is over.
func (s *Suspects) Enter(ctx context.Context, count int) (leave func(), err error) {
	me := &suspect{count: count, given: make(chan struct{})}
	s.mu.Lock()
	at := slices.IndexFunc(s.line, func(o *suspect) bool { return o.count > count })
	if at < 0 {
		at = len(s.line)
	}
	s.line = slices.Insert(s.line, at, me)
	s.next()
	s.mu.Unlock()
	leave = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = false
		s.next()
	})
	select {
	case <-me.given:
		return leave, nil
	case <-s.Over:
		err = llm.ErrStop
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	at = slices.Index(s.line, me)
	if at >= 0 {
		s.line = slices.Delete(s.line, at, at+1)
	}
	s.mu.Unlock()
	if at < 0 {
		leave() // it was given at the same moment
	}
	return nil, err
}

// next gives a free place to the first in line. The lock is held.
func (s *Suspects) next() {
	if !s.taken && len(s.line) > 0 {
		s.taken = true
		close(s.line[0].given)
		s.line = slices.Delete(s.line, 0, 1)
	}
}
