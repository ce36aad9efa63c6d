package outbox

import (
	"time"

	"ebb/sessions"
)

// channel is one conversation of one robot, whose replies share a rate. Replies on cards have a channel of their own,
// since the pause of a message must not leave a card unfinished. A session's replies are in order across both. A turn
// opens no card before the earlier replies are sent, see [Outbox.AwaitSent]. The end of a card that was opened before waits for
// the session's messages. A Markdown reply follows the session's unsent card.
type channel struct {
	robot sessions.RobotCode
	id    sessions.ConversationID
	card  bool
}

// webhook is an address for messages to a conversation.
type webhook struct {
	address string
	end     time.Time // zero: unknown
}

func webhookOf(t sessions.Target) webhook { return webhook{t.Webhook, t.WebhookExpires} }

// isUsable reports whether a webhook has not expired, by the storage's clock.
func (w webhook) isUsable(now time.Time) bool {
	return w.address != "" && (w.end.IsZero() || !now.Add(expiryMargin).After(w.end))
}

func (w webhook) isAfter(x webhook) bool {
	return w.address != "" && w != x && !w.end.Before(x.end)
}

func channelOf(o sessions.Outgoing) channel {
	t := o.Reply.Target
	return channel{t.RobotCode, t.ConversationID, t.Card != ""}
}

// expiryMargin is the time before its expiry from which a webhook is not used: clocks disagree.
const expiryMargin = time.Minute
