package serial

import (
	"context"
	"ebb/sessions"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Mailboxes run work for one session at a time, each session apart from all others, and coalesce wake-ups. A session
// at rest costs nothing: its goroutine lives from a wake-up to the moment there is no more to do.
//
//	         Wake                     work returns more, or Wake came meanwhile
//	(none) ────────▶ running ────────┐
//	  ▲                │  ▲──────────┘
//	  └────────────────┘
//	    work returns done
//
// A wake-up that comes while the work runs makes it run once more: it is never lost, and k of them cost one run.
type Mailboxes struct {
	ctx  context.Context
	work Work

	mu     sync.Mutex
	boxes  map[sessions.Key]*box
	closed bool
	left   func(sessions.Key) // after Close
	wg     sync.WaitGroup
}

// Work does one piece of a session's work, and says whether there is more. An error is trouble that may pass: the
// work is tried again after a pause, unless it is ErrLeaseHeld or ErrNotFound, which say that there is nothing for us here.
type Work func(ctx context.Context, key sessions.Key) (more bool, err error)

type box struct{ again bool }

// NewMailboxes returns mailboxes whose work runs under ctx, which carries the logger.
func NewMailboxes(ctx context.Context, work Work) *Mailboxes {
	return &Mailboxes{ctx: ctx, work: work, boxes: map[sessions.Key]*box{}}
}

// Wake has the session's work done. It never blocks; after Close it says that the work is left.
func (m *Mailboxes) Wake(key sessions.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed && m.boxes[key] == nil {
		m.left(key)
		return
	}
	if b := m.boxes[key]; b != nil {
		b.again = true
		return
	}
	b := &box{}
	m.boxes[key] = b
	m.wg.Add(1)
	go m.run(key, b)
}

// Busy reports whether the session has work in hand.
func (m *Mailboxes) Busy(key sessions.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boxes[key] != nil
}

// Live is the number of sessions with work in hand.
func (m *Mailboxes) Live() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.boxes)
}

// Close lets the work in hand finish and starts no more. From now on left is told, perhaps more than once, of each session
// that has work waiting and none in hand. It must not block, or call the mailboxes.
func (m *Mailboxes) Close(left func(sessions.Key)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.left = true, left
}

// Wait returns when no work is in hand, or with ctx's cause.
func (m *Mailboxes) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { m.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// The pause after trouble doubles up to its limit: work goes on within a second after a database came back.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 800 * time.Millisecond
)

func (m *Mailboxes) run(key sessions.Key, b *box) {
	defer m.wg.Done()
	pause, failed := firstPause, 0
	for {
		more, err := m.once(key)
		wait := time.Duration(0)
		switch {
		case err == nil:
			pause, failed = firstPause, 0
		case errors.Is(err, sessions.ErrLeaseHeld), errors.Is(err, sessions.ErrNotFound):
			more = false
		default:
			// The first time, the second, the fourth, the eighth: an outage of minutes meets a thousand sessions.
			if failed++; failed&(failed-1) == 0 {
				zerolog.Ctx(m.ctx).Warn().EmbedObject(key).Err(err).Int("times", failed).Msg("Session work interrupted, trying again")
			}
			more, wait = true, pause
			pause = min(2*pause, lastPause)
			wait += time.Duration(rand.Int64N(int64(wait) / 4)) // not all of them at once
		}
		if wait > 0 && !sleep(m.ctx, wait) {
			more = false
		}
		if m.rest(key, b, more) {
			return
		}
	}
}

// rest takes the box away where nothing is left to do. It looks and leaves under one lock, so that no wake-up falls
// between the two.
func (m *Mailboxes) rest(key sessions.Key, b *box, more bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if (more || b.again) && !m.closed && m.ctx.Err() == nil {
		b.again = false
		return false
	}
	delete(m.boxes, key)
	if (more || b.again) && m.closed {
		m.left(key)
	}
	return true
}

// once runs the work and turns a panic into an error: one session's trouble is never another's.
func (m *Mailboxes) once(key sessions.Key) (more bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			zerolog.Ctx(m.ctx).Error().EmbedObject(key).Str("stack", string(debug.Stack())).Interface("panic", p).Msg("Session work panicked")
			err = fmt.Errorf("work on session %s panicked", key)
		}
	}()
	return m.work(m.ctx, key)
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
