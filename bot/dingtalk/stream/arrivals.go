package stream

import (
	"context"
	"slices"
	"sync"
	"time"

	"ebb/sessions"
)

// maxIdle bounds the conversations whose last message time is kept.
const maxIdle = 10_000

// arrivals has received and not yet stored messages by conversation.
type arrivals struct {
	mu   sync.Mutex
	open map[sessions.ConversationID]*arriving // no cache: turns wait for those with pending messages
}

type arriving struct {
	last    time.Time       // SentAt of the latest message
	pending []chan struct{} // closed when the message is stored or refused
}

// addMessage registers a message, in call order. Messages of one millisecond get different times. done ends the wait for it.
func (a *arrivals) addMessage(m *sessions.Message) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.open[m.ConversationID]
	if c == nil {
		a.pruneStored()
		c = &arriving{}
		a.open[m.ConversationID] = c
	}
	if !m.SentAt.IsZero() && m.SentAt.Equal(c.last.Truncate(time.Millisecond)) {
		m.SentAt = c.last.Add(time.Microsecond)
	}
	c.last = m.SentAt
	stored := make(chan struct{})
	c.pending = append(c.pending, stored)
	return func() {
		close(stored)
		a.mu.Lock()
		defer a.mu.Unlock()
		c.pending = slices.DeleteFunc(c.pending, func(ch chan struct{}) bool { return ch == stored })
	}
}

// The caller of prune holds the mutex.
func (a *arrivals) pruneStored() {
	if a.open == nil {
		a.open = map[sessions.ConversationID]*arriving{}
	}
	if len(a.open) < maxIdle {
		return
	}
	for id, c := range a.open {
		if len(c.pending) == 0 {
			delete(a.open, id)
		}
	}
}

// awaitStored returns when each message received before the call is stored or refused, or with ctx.
func (a *arrivals) awaitStored(ctx context.Context, id sessions.ConversationID) {
	a.mu.Lock()
	var pending []chan struct{}
	if c := a.open[id]; c != nil {
		pending = slices.Clone(c.pending)
	}
	a.mu.Unlock()
	for _, stored := range pending {
		select {
		case <-stored:
		case <-ctx.Done():
			return
		}
	}
}
