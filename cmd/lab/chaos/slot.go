package chaos

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"ebb/cmd/lab/rig"
)

func (l *lives) changeLife(process string, f func(*life)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[process] == nil {
		l.of[process] = &life{}
	}
	f(l.of[process])
}

func (l *lives) copyAll() map[string]life {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]life{}
	for name, x := range l.of {
		c := *x
		c.apart = slices.Clone(x.apart)
		out[name] = c
	}
	return out
}

// startProcess does not wait for a connection: everything may be down.
func (s *slot) startProcess(_ context.Context) error {
	s.runs++
	name := fmt.Sprintf("%s-%d", s.name, s.runs)
	address, err := s.link.Address(s.databaseURL())
	if err != nil {
		return err
	}
	config, err := s.gatewayConfig(name, address)
	if err != nil {
		return err
	}
	s.lives.changeLife(name, func(l *life) { l.slot, l.started = s.name, time.Now() })
	c, err := rig.StartProcess(name, s.program, config, s.book)
	if err != nil {
		return err
	}
	s.child = c
	go c.ReportLoss(func(err error) { s.addBroken("%v; its log ends with %q", err, s.book.newestLines(c.Name)) })
	return nil
}

// stopLimit bounds a clean stop: drain, flush and the delays of a frozen database.
const stopLimit = 45 * time.Second

// awaitExit waits for the end of a stopping process. After one request its exit code must be 0.
func (w *world) awaitExit(ctx context.Context, c *rig.Process) {
	limit, stop := context.WithTimeout(ctx, stopLimit)
	defer stop()
	err := c.WaitExit(limit)
	twice := false
	w.lives.changeLife(c.Name, func(l *life) { l.ended, l.exit, twice = time.Now(), c.Err, l.twice })
	late := c.Alive()
	if late {
		_ = c.Kill() // it has ended then
	}
	begun := len(w.book.newestLines(c.Name)) > 0 // a process without a line may end before it heeds signals
	if err != nil && ctx.Err() == nil && (late || !twice && begun) {
		w.addBroken("%v; its log ends with %q", err, w.book.newestLines(c.Name))
	}
}

// requestStop waits for the end in the background.
func (s *slot) requestStop(ctx context.Context, c *rig.Process) error {
	s.lives.changeLife(c.Name, func(l *life) { l.stopRequested = time.Now() })
	if err := c.Terminate(); err != nil {
		return err
	}
	s.leaving.Go(func() { s.awaitExit(ctx, c) })
	return nil
}

// freezeFor stops a process like a swapping or migrating machine. It returns at once.
func (s *slot) freezeFor(c *rig.Process, d time.Duration) {
	pid := c.PID()
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return
	}
	s.setApart(c, d)
	time.AfterFunc(d, func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // it may have been killed meanwhile
}

// setApart notes that a process is cut off for a while.
func (s *slot) setApart(c *rig.Process, d time.Duration) {
	now := time.Now()
	s.lives.changeLife(c.Name, func(l *life) { l.apart = append(l.apart, rig.Interval{From: now, To: now.Add(d + time.Second)}) })
}

func (s *slot) killProcess() error {
	s.lives.changeLife(s.child.Name, func(l *life) { l.killed = time.Now() })
	return s.child.Kill()
}

func (l life) wasApart(from, to time.Time) bool {
	return slices.ContainsFunc(l.apart, func(s rig.Interval) bool { return s.From.Before(to) && from.Before(s.To) })
}
