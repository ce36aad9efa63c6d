package main

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// slot is the place of one gateway: processes come and go in it, each under a name of its own.
type slot struct {
	*chaos
	name  string
	child *child
	runs  int

	mu     sync.Mutex
	frozen []span // while a process of the slot stood still
	deaths map[string]time.Time
}

// start starts a new process and does not wait for it to connect: it may find everything in ruins.
func (s *slot) start(_ context.Context) error {
	s.runs++
	name := fmt.Sprintf("%s-%d", s.name, s.runs)
	config, err := s.gatewayConfig(name)
	if err != nil {
		return err
	}
	c, err := startChild(name, s.program, config, s.book)
	if err != nil {
		return err
	}
	s.child = c
	go c.watch(func(err error) { s.broke("%v; its log ends with %q", err, s.book.last(c.name)) })
	return nil
}

// stopLimit is how long a clean stop may take, here: drain and flush and the end of what a frozen database holds up.
const stopLimit = 45 * time.Second

// awaitExit waits for the end of a process that was told to stop.
func (w *chaos) awaitExit(ctx context.Context, c *child) {
	limit, stop := context.WithTimeout(ctx, stopLimit)
	defer stop()
	if err := c.ended(limit); err != nil && ctx.Err() == nil {
		w.broke("%v; its log ends with %q", err, w.book.last(c.name))
		_ = c.kill() // it has ended then
	}
}

// freeze stops the process for a while, as a machine does that swaps or is migrated. It returns at once.
func (s *slot) freeze(d time.Duration) {
	pid := s.child.pid()
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return
	}
	from := time.Now()
	s.mu.Lock()
	s.frozen = append(s.frozen, span{from: from, to: from.Add(d + time.Second)})
	s.mu.Unlock()
	time.AfterFunc(d, func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // it may have been killed meanwhile
}

// stood reports whether a process of the slot stood still at some time between two moments.
func (s *slot) stood(from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.frozen {
		if f.from.Before(to) && from.Before(f.to) {
			return true
		}
	}
	return false
}

// kill ends the process as the kernel would.
func (s *slot) kill() error {
	s.mu.Lock()
	if s.deaths == nil {
		s.deaths = map[string]time.Time{}
	}
	s.deaths[s.child.name] = time.Now()
	s.mu.Unlock()
	return s.child.kill()
}

// killed reports whether a process of the slot was killed before a moment.
func (s *slot) killed(process string, before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.deaths[process]
	return ok && at.Before(before)
}
