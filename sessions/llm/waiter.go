package llm

import (
	"context"

	"ebb/sessions"
)

type waiterKey struct{}

// WithWaiter marks work under ctx as work for members who wait in the session. Unmarked work is upkeep.
func WithWaiter(ctx context.Context, key sessions.Key) context.Context {
	return context.WithValue(ctx, waiterKey{}, key)
}

// SessionOf is empty for work without a waiting session.
func SessionOf(ctx context.Context) sessions.Key {
	key, _ := ctx.Value(waiterKey{}).(sessions.Key)
	return key
}
