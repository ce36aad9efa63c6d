package slot

import (
	"context"
	"time"

	"ebb/sessions"
)

// Turns marks the messages of turns. See [sessions.Turns].
type Turns interface {
	Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error)
	BeginAlone(ctx context.Context, l sessions.Lease, limit int, a sessions.Alone) (sessions.View, error)
	Suspects(ctx context.Context) (int, error)
}

// Waiting lists the messages that wait. See [sessions.Inbox].
type Waiting interface {
	Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error)
}

// Cards reads the lease of a session that a card is shown for. See [sessions.Cards].
type Cards interface {
	LeaseOf(ctx context.Context, key sessions.Key) (sessions.Lease, error)
}

// Notices stores notices that no turn commits. See [sessions.Outbox].
type Notices interface {
	Announce(ctx context.Context, l sessions.Lease, r sessions.Reply) ([]sessions.Outgoing, error)
}

// Outbox delivers committed replies.
type Outbox interface {
	// Resume queues the replies that an earlier owner left unsent.
	Resume(ctx context.Context, l sessions.Lease) error
	// AwaitSent reports false if replies of the session that no other passes are unsent after atMost, or ctx ends. Replies that wait
	// for calls go by the webhook of to, a newer target in the conversation.
	AwaitSent(ctx context.Context, key sessions.Key, to sessions.Target, atMost time.Duration) bool
	// Send queues replies that were committed under l; then runs after the first attempt, or at once without replies.
	Send(ctx context.Context, l sessions.Lease, replies []sessions.Outgoing, then func())
	// Invalidate makes the next turn read the session's rows again: a commit may have stored an unknown reply.
	Invalidate(key sessions.Key)
}
