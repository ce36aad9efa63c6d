package chat

import (
	"context"
	"time"

	"ebb/sessions"
)

// Transport brings messages in and replies out.
type Transport interface {
	// Run receives messages until ctx ends, with reconnects, and calls accept for each from any goroutine. It
	// acknowledges a message only after accept returned nil. When ctx ends it stops intake, waits for running
	// accepts, and returns nil. An error means that it can't work at all.
	Run(ctx context.Context, accept Accept) error

	// Send delivers the part o.Part of a reply, and splits a long text. It never retries: a [*SendError] classifies
	// the failure. Calls for one conversation are sequential, except for refusals of access.
	Send(ctx context.Context, o sessions.Outgoing) (Sent, error)

	// Ready reports whether messages can arrive now.
	Ready() bool
}

// Receiver is a [Transport] that tracks messages received and not yet accepted.
type Receiver interface {
	// AwaitReceived returns when all messages of a conversation received before the call are accepted or refused, or
	// ctx ends.
	AwaitReceived(ctx context.Context, c sessions.ConversationID)
}

// Accept makes a message durable. It returns nil only after the commit.
type Accept func(ctx context.Context, m sessions.Message) error

// Sent is the result of sending a part, with Part also after a failure.
type Sent struct {
	Via  string             // one of the ways below
	Card sessions.CardState // new state of the reply's card; empty: unchanged
	// Carrier is the platform's key of the message, by which people quote it; empty: unknown, as by a webhook.
	Carrier string
	Part    int  // parts that arrived
	More    bool // parts remain, each for another call of Send
}

// The ways of a part.
const (
	ViaWebhook = "webhook"
	ViaOpenAPI = "openapi"
	ViaCard    = "card"
)

// SendError is a classified failure of delivery.
type SendError struct {
	// Permanent: a retry can't succeed (group disbanded, content refused).
	Permanent bool
	// Content: the platform refuses the words of the message. Others would arrive.
	Content bool
	// After is the minimum wait; 0 leaves it to the outbox's backoff.
	After time.Duration
	// Maybe: the reply may have arrived, because the response was lost.
	Maybe bool
	// Refused: the reply did not arrive, for an unknown reason. Another reply may succeed.
	Refused bool
	// Account: the platform refuses the application itself, for a permission, its credentials or its address. Any other
	// message would fail likewise.
	Account bool
	// Silent: the platform did not answer in time.
	Silent bool
	// Aside: the reply has no webhook of use, and waits for calls to the open API. A newer webhook takes none.
	Aside bool
	// Gone: the platform does not know the person or the conversation any more.
	Gone bool
	// Said is the platform's own text, for an operator's terminal; empty for none. It is never logged or stored: it may
	// repeat what people wrote.
	Said string
	Err  error
}

// Error returns the cause's text.
func (e *SendError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
