package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

const (
	backgroundInterval = 30 * time.Second
	pageSize           = 100
)

// maxTimeouts consecutive model timeouts end a check. The provider is unavailable then, and each further call would
// delay the others by its timeout.
const maxTimeouts = 3

type timeouts int

func (n *timeouts) record(err error) {
	if *n++; !errors.Is(err, context.DeadlineExceeded) {
		*n = 0
	}
}

func (n timeouts) tooMany() bool { return n >= maxTimeouts }

func withSession(ctx context.Context, key sessions.Key) context.Context {
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Logger()
	return log.WithContext(ctx)
}
