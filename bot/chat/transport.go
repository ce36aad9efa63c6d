package chat

import (
	"context"
	"time"

	"ebb/sessions"
)

// Transport brings messages in and replies out.
type Transport interface {
	// Run receives messages until ctx ends, reconnecting by itself, and calls accept for each from any goroutine. It
	// acknowledges a message only after accept returned nil. When ctx ends, Run stops intake, waits for the accepts
	// that run, and returns nil; another error says that it can't work at all.
	Run(ctx context.Context, accept Accept) error

	// Send delivers one part of a reply, the one at o.Part, and returns how. It splits what is too long. It retries
	// nothing: a [*SendError] says what to do. Calls for one conversation come one at a time.
	Send(ctx context.Context, o sessions.Outgoing) (Sent, error)

	// Ready reports whether messages can arrive now.
	Ready() bool
}

// Receiver is a [Transport] that knows of messages which it received and that are not accepted yet.
type Receiver interface {
	// AwaitReceived returns when each message of a conversation that was received before the call is accepted or
	// refused, or when ctx ends.
	AwaitReceived(ctx context.Context, c sessions.ConversationID)
}

// Accept makes a message durable. It returns nil only after the commit.
type Accept func(ctx context.Context, m sessions.Message) error

// Sent is how a part of a reply arrived. Part is also set when Send fails.
type Sent struct {
	Via  string // webhook or openapi
	Part int    // parts that arrived
	More bool   // parts are left: each is a call of Send
}

// SendError is a reply that did not arrive, classified.
type SendError struct {
	// Permanent: no retry will help (group disbanded, content refused).
	Permanent bool
	// After is how long to wait at least; 0 leaves it to the outbox's backoff.
	After time.Duration
	// Maybe: the reply may have arrived, the answer was lost.
	Maybe bool
	// Refused: it surely did not arrive, and nothing says why. Another reply may pass.
	Refused bool
	Err     error
}

// Error is the cause's text.
func (e *SendError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
