package serial

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/retry"
)

// Mailboxes run one piece of work at a time for each session, and coalesce wake-ups. A session without work costs
// nothing: its goroutine ends with its work.
//
//	         Wake                     work returns more, or Wake came meanwhile
//	(none) ────────▶ running ────────┐
//	  ▲                │  ▲──────────┘
//	  └────────────────┘
//	    work returns done
//
// A wake-up during the work makes it run once more: it is never lost, and k of them cost one run.
type Mailboxes struct {
	ctx  context.Context
	work Work

	mu     sync.Mutex
	boxes  map[sessions.Key]*box
	closed bool
	left   func(sessions.Key) // after Close
	wg     sync.WaitGroup
}

// Work does one piece of a session's work and reports whether more is due. After an error it is retried with a pause,
// except after ErrLeaseHeld and ErrNotFound.
type Work func(ctx context.Context, key sessions.Key) (more bool, err error)

type box struct{ again bool }

// NewMailboxes returns mailboxes whose work runs under ctx, which carries the logger.
func NewMailboxes(ctx context.Context, work Work) *Mailboxes {
	return &Mailboxes{ctx: ctx, work: work, boxes: map[sessions.Key]*box{}}
}

// Wake starts the session's work. It never blocks. Work after Close is reported as left.
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

// Busy reports whether work of the session is in progress.
func (m *Mailboxes) Busy(key sessions.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boxes[key] != nil
}

// Live is the number of sessions with work in progress.
func (m *Mailboxes) Live() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.boxes)
}

// Close lets running work finish and starts no more. From then on left receives each session with waiting and no
// running work, possibly repeatedly. It must neither block nor call the mailboxes.
func (m *Mailboxes) Close(left func(sessions.Key)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.left = true, left
}

// Wait returns when no work is in progress, or with ctx's cause.
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

// pausesAfterError are from 50 ms to 800 ms, and up to a quarter more: work resumes within a
// second after an outage.
var pausesAfterError = retry.Pauses{First: 56250 * time.Microsecond, Max: 900 * time.Millisecond, Jitter: 1.0 / 9}

// run repeats the work of a session until there is no more. A lease that another replica holds, or a session that is gone, ends it
// without a pause: the owner does the work.
func (m *Mailboxes) run(key sessions.Key, b *box) {
	defer m.wg.Done()
	pauses, failed := pausesAfterError.Start(), 0
	for {
		more, err := m.runOnce(key)
		wait := time.Duration(0)
		switch {
		case err == nil:
			pauses.Reset()
			failed = 0
		case errors.Is(err, sessions.ErrLeaseHeld), errors.Is(err, sessions.ErrNotFound):
			more = false
		default:
			// Powers of two: an outage of minutes affects a thousand sessions.
			if failed++; failed&(failed-1) == 0 {
				zerolog.Ctx(m.ctx).Warn().EmbedObject(key).Err(err).Int("times", failed).Msg("Session work interrupted, trying again")
			}
			more, wait = true, pauses.NextBackOff()
		}
		if wait > 0 && !retry.Sleep(m.ctx, wait) {
			more = false
		}
		if m.finishBox(key, b, more) {
			return
		}
	}
}

// One lock covers check and removal, so that no wake-up is lost.
func (m *Mailboxes) finishBox(key sessions.Key, b *box, more bool) bool {
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

// A panic becomes an error, so that sessions do not affect each other.
func (m *Mailboxes) runOnce(key sessions.Key) (more bool, err error) {
	log := zerolog.Ctx(m.ctx).With().EmbedObject(key).Logger()
	err = guard.Do(log.WithContext(m.ctx), guard.Session, func() (err error) {
		more, err = m.work(m.ctx, key)
		return err
	})
	return more, err
}
