package card

import (
	"context"
	"sync"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
)

var _ chat.Display = (*Cards)(nil)

// Show implements [chat.Display]. Without calls for a card the reply of the turn is Markdown. So is that to scheduled
// messages alone: a person does not wait for it, and it would take a card each time.
func (c *Cards) Show(ctx context.Context, s chat.Shown) chat.Live {
	level := c.cfg.Governor.Level()
	full := level > calls.Unstreamed || s.Target.Scheduled || c.cfg.Template == "" || c.breaker.Paused(s.Target.ConversationID)
	if !full && c.cfg.Stream != Never && (level == calls.Streaming || c.cfg.Stream == Always) {
		return c.stream(ctx, s)
	}
	track, delivered := c.resume(ctx, s)
	if delivered {
		return unstreamed(func() string { return track })
	}
	if full {
		return nil
	}
	return unstreamed(sync.OnceValue(func() string {
		if !s.Sent(ctx) {
			return ""
		}
		return track
	}))
}

// The card of an unstreamed turn is created with its reply.
type unstreamed func() string

func (unstreamed) Text(string, bool) {}
func (unstreamed) Thought(string)    {}
func (unstreamed) Tool(string)       {}
func (unstreamed) Visible() bool     { return false }
func (u unstreamed) Stop() string    { return u() }
