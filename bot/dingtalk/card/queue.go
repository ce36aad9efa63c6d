package card

import (
	"context"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
)

const maxQueued = 200

var _ chat.Queuer = (*Cards)(nil)

// Queue implements [chat.Queuer]. A turn gets no card if it is a scheduled one, if its answers are not streamed, or if calls are scarce.
func (c *Cards) Queue(ctx context.Context, s chat.Shown) (leave func()) {
	if s.Target.Scheduled || c.cfg.Stream == Never || c.cfg.Governor.Level() != calls.Streaming || c.cfg.Template == "" ||
		c.breaker.Paused(s.Target.ConversationID) {
		return func() {}
	}
	if c.queued.Add(1) > maxQueued {
		c.queued.Add(-1)
		return func() {}
	}
	waits, begins := context.WithCancel(ctx)
	sent := s.Sent
	s.Sent = func(context.Context) bool { return sent(waits) && waits.Err() == nil }
	l := c.display(ctx, s, queuedStatus(s.Lang), func(ctx context.Context, l *live) {
		l.waits = true
		select {
		case c.opening <- struct{}{}:
			defer func() { <-c.opening }()
			l.open(ctx)
		case <-waits.Done(): // the turn opens it
		}
	})
	return func() {
		begins()
		l.Stop()
		c.queued.Add(-1)
	}
}
