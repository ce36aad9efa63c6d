package slot

import (
	"context"
	"sync"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// receiveWait bounds the wait for received messages that are not stored yet.
const receiveWait = time.Second

// Gathering lets a turn wait for messages that are sent together. It has the arrival of each session's first message.
type Gathering struct {
	wait     time.Duration   // since the first message; 0: none
	draining <-chan struct{} // ends the wait
	receiver chat.Receiver

	mu    sync.Mutex
	since map[sessions.Key]time.Time
}

// Note notes a stored message. It keeps the first time: later messages do not delay the turn.
func (g *Gathering) Note(key sessions.Key) {
	if g.wait <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since == nil {
		g.since = map[sessions.Key]time.Time{}
	}
	if _, known := g.since[key]; !known {
		g.since[key] = time.Now()
	}
}

func (g *Gathering) first(key sessions.Key) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.since[key]
}

func (g *Gathering) forget(key sessions.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.since, key)
}

// Await waits for messages soon after the first one, and for those that are received here and not stored yet.
func (g *Gathering) Await(ctx context.Context, key sessions.Key) {
	if first := g.first(key); !first.IsZero() {
		moment := time.NewTimer(g.wait - time.Since(first))
		defer moment.Stop()
		select {
		case <-moment.C:
		case <-g.draining:
		case <-ctx.Done():
		}
		g.forget(key)
	}
	soon, stop := context.WithTimeout(ctx, receiveWait)
	defer stop()
	_, conversation := key.Conversation()
	g.receiver.AwaitReceived(soon, conversation)
}
