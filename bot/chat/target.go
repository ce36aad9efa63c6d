package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"ebb/sessions"
)

// TargetOf is where the reply to asked goes: to the conversation, by the freshest webhook, mentioning every asker once.
func TargetOf(asked []sessions.Event) sessions.Target {
	var g sessions.Target
	seen := map[sessions.UserID]bool{}
	for _, e := range asked {
		m := e.Message
		if m == nil {
			continue
		}
		g.RobotCode, g.ConversationID, g.ConversationType = m.RobotCode, m.ConversationID, m.ConversationType
		g.StaffID = m.StaffID
		if m.Webhook != "" && !m.WebhookExpires.Before(g.WebhookExpires) {
			g.Webhook, g.WebhookExpires = m.Webhook, m.WebhookExpires
		}
		if m.ConversationType != sessions.Private && m.SenderID != "" && !seen[m.SenderID] {
			seen[m.SenderID] = true
			g.Mentions = append(g.Mentions, sessions.Mention{StaffID: m.StaffID, Nick: m.SenderNick})
		}
	}
	return g
}

// ReplyKey is the reply's idempotency key: the same for every try, whichever process makes it. A dead letter that is retried
// has a new time, and its answer another key than the notice that it was set aside.
func ReplyKey(key sessions.Key, e sessions.Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", key, e.ID, e.CreatedAt.UnixMicro()))
	return KeyPrefix + hex.EncodeToString(sum[:12])
}

// KeyPrefix tells our keys from those of others that send to the same conversation.
const KeyPrefix = "ebb-"
