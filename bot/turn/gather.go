package turn

import (
	"context"
	"sync"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// receiveWait bounds the wait for received messages that are not stored yet.
const receiveWait = time.Second

// gathering has the arrival of each session's first message.
type gathering struct {
	mu    sync.Mutex
	since map[sessions.Key]time.Time
}

// note keeps the first time: later messages do not delay the turn.
func (g *gathering) note(key sessions.Key, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since == nil {
		g.since = map[sessions.Key]time.Time{}
	}
	if _, known := g.since[key]; !known {
		g.since[key] = at
	}
}

func (g *gathering) first(key sessions.Key) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.since[key]
}

func (g *gathering) forget(key sessions.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.since, key)
}

// Wake starts a turn for a stored message, or makes the running one look for a /stop.
func (r *Runner) Wake(key sessions.Key) {
	if r.cfg.Gather > 0 {
		r.gathering.note(key, time.Now())
	}
	r.running.note(key)
	r.turns.Wake(key)
}

// Look makes a session's running turn look for its stop and for the end of its lease.
func Look(r *Runner, key sessions.Key) { r.running.note(key) }

// gather waits for messages soon after the first one, and for those that are received here and not stored yet.
func (r *Runner) gather(ctx context.Context, key sessions.Key) {
	if first := r.gathering.first(key); !first.IsZero() {
		moment := time.NewTimer(r.cfg.Gather - time.Since(first))
		defer moment.Stop()
		select {
		case <-moment.C:
		case <-r.draining:
		case <-ctx.Done():
		}
		r.gathering.forget(key)
	}
	if in, ok := r.cfg.Transport.(chat.Receiver); ok {
		soon, stop := context.WithTimeout(ctx, receiveWait)
		defer stop()
		_, conversation := key.Conversation()
		in.AwaitReceived(soon, conversation)
	}
}
