package turn

import (
	"context"
	"sync"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// receiveWait bounds how long a turn waits for messages that were received and are not stored yet.
const receiveWait = time.Second

// gathering notes since when sessions have a message that no turn has begun with. The zero value is ready.
type gathering struct {
	mu    sync.Mutex
	since map[sessions.Key]time.Time
}

// note keeps the time of the first message only: no number of messages after it delays the turn further.
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

// first is when the session's first message was noted; zero for none.
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

// Wake has a turn answer a message that has just been stored.
func (r *Runner) Wake(key sessions.Key) {
	if r.cfg.Gather > 0 {
		r.gathering.note(key, time.Now())
	}
	r.turns.Wake(key)
}

// gather waits until messages that were sent together can be taken together, in their order: for a moment after the first
// of them, and for those that were received here and are still being stored.
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
