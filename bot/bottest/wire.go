package bottest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// Wire is a transport without a network: tests decide the arrivals and see the replies.
type Wire struct {
	Mu      sync.Mutex
	Accept  chat.Accept
	sent    []sessions.Outgoing
	at      time.Time                                                         // time of the last message
	Deliver func(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) // nil: everything arrives
	Running chan struct{}
}

// Run implements chat.Transport.
func (w *Wire) Run(ctx context.Context, accept chat.Accept) error {
	w.Mu.Lock()
	w.Accept = accept
	w.Mu.Unlock()
	close(w.Running)
	<-ctx.Done()
	return nil
}

// Send implements chat.Transport.
func (w *Wire) Send(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) {
	w.Mu.Lock()
	w.sent, w.at = append(w.sent, o), time.Now()
	send := w.Deliver
	w.Mu.Unlock()
	if send != nil {
		return send(ctx, o)
	}
	return chat.Sent{Via: "webhook", Part: 1}, nil
}

// Ready implements chat.Transport.
func (w *Wire) Ready() bool { return true }

// Sends is what was tried to send so far.
func (w *Wire) Sends() []sessions.Outgoing {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return slices.Clone(w.sent)
}

// LastAt is the time of the last try to send.
func (w *Wire) LastAt() time.Time { w.Mu.Lock(); defer w.Mu.Unlock(); return w.at }

// Texts is what was tried to send, as people read it.
func (w *Wire) Texts() []string {
	var out []string
	for _, o := range w.Sends() {
		out = append(out, o.Reply.Text)
	}
	return out
}

// Kill cuts the bot off from the storage and the network, as a dead process is.
func (w *World) Kill() {
	w.Store.Fail(func(string) error { return ErrAway })
	w.Wire.Mu.Lock()
	w.Wire.Deliver = func(context.Context, sessions.Outgoing) (chat.Sent, error) { return chat.Sent{}, ErrAway }
	w.Wire.Mu.Unlock()
	w.Begin()
}

// Listener receives the streamed text of all turns.
type Listener func(text string)

// Show implements chat.Display.
func (l Listener) Show(context.Context, chat.Shown) chat.Live { return l }

// Text implements chat.Live.
func (l Listener) Text(text string, _ bool) { l(text) }

// Thought implements chat.Live.
func (l Listener) Thought(string) {}

// Tool implements chat.Live.
func (l Listener) Tool(string) {}

// Visible implements chat.Live.
func (l Listener) Visible() bool { return true }

// Stop implements chat.Live.
func (l Listener) Stop() string { return "" }

// CardOf shows the question that holds the word on a card.
type CardOf string

// Show implements chat.Display.
func (c CardOf) Show(_ context.Context, s chat.Shown) chat.Live {
	if strings.Contains(s.Asked[0].Content, string(c)) {
		return Carded(s.Tracks[0])
	}
	return Carded("")
}

// Carded is the display of a turn on a card; empty for none.
type Carded string

// Text implements chat.Live.
func (Carded) Text(string, bool) {}

// Thought implements chat.Live.
func (Carded) Thought(string) {}

// Tool implements chat.Live.
func (Carded) Tool(string) {}

// Visible implements chat.Live.
func (c Carded) Visible() bool { return c != "" }

// Stop implements chat.Live.
func (c Carded) Stop() string { return string(c) }

// Sender makes a wire's send function from one that sees the number of the try, from 1.
func Sender(f func(ctx context.Context, try int, o sessions.Outgoing) (chat.Sent, error)) *Wire {
	var n atomic.Int32
	return &Wire{Deliver: func(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) { return f(ctx, int(n.Add(1)), o) }}
}

// Arrived is the result of a message that arrived.
var Arrived = chat.Sent{Via: "webhook", Part: 1}
