package turn

import (
	"context"
	"slices"
	"sync"
	"time"

	"ebb/bot/llm"
)

// suspectAlone is how long a message with one counted attempt excludes other suspects: most are innocent, and a
// hanging model must not delay all of them. From a second attempt on it is alone until its turn ends.
const suspectAlone = 10 * time.Second

// Suspects runs the turns of suspects one at a time: see [sessions.Store.Begin]. The fewest attempts come first, so
// that the innocent are answered before the next crash.
type Suspects struct {
	Closed <-chan struct{} // ends all waits

	mu    sync.Mutex
	taken bool
	line  []*suspect // by count, then by arrival
}

type suspect struct {
	count int
	given chan struct{}
}

// Enter waits for the slot and returns its release, which may be called several times. The error is ctx's cause, or
// ErrStop once Closed is closed.
func (s *Suspects) Enter(ctx context.Context, count int) (leave func(), err error) {
	me := &suspect{count: count, given: make(chan struct{})}
	s.mu.Lock()
	at := slices.IndexFunc(s.line, func(o *suspect) bool { return o.count > count })
	if at < 0 {
		at = len(s.line)
	}
	s.line = slices.Insert(s.line, at, me)
	s.grantNext()
	s.mu.Unlock()
	leave = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = false
		s.grantNext()
	})
	select {
	case <-me.given:
		return leave, nil
	case <-s.Closed:
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
		leave() // granted at the same moment
	}
	return nil, err
}

// grantNext needs the lock.
func (s *Suspects) grantNext() {
	if !s.taken && len(s.line) > 0 {
		s.taken = true
		close(s.line[0].given)
		s.line = slices.Delete(s.line, 0, 1)
	}
}
