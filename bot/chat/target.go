package chat

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

// TargetOf returns the conversation of asked, by the newest webhook, with one mention of every asker.
// The text of a reminder names its creator, who is notified all the same: people of a muted group read no other message in time.
func TargetOf(asked []sessions.Event) sessions.Target {
	var g sessions.Target
	g.Scheduled = len(asked) > 0 && !slices.ContainsFunc(asked, func(e sessions.Event) bool { return !e.IsScheduled() })
	seen := map[sessions.UserID]bool{}
	for _, e := range asked {
		m := e.Message
		if m == nil {
			continue
		}
		g.RobotCode, g.ConversationID, g.ConversationType = m.RobotCode, m.ConversationID, m.ConversationType
		g.StaffID = m.StaffID
		if g.Scheduled && m.Scheduled.ID > 0 {
			g.Schedules = append(g.Schedules, m.Scheduled.ID)
		}
		if m.Webhook != "" && !m.WebhookExpires.Before(g.WebhookExpires) {
			g.Webhook, g.WebhookExpires = m.Webhook, m.WebhookExpires
		}
		if m.ConversationType != sessions.Private && m.SenderID != "" && !seen[m.SenderID] {
			seen[m.SenderID] = true
			g.Mentions = append(g.Mentions, sessions.Mention{StaffID: m.StaffID, Nick: m.SenderNick, Named: m.Scheduled != nil && m.Scheduled.Kind == sessions.Remind})
		}
	}
	return g
}

// ReplyKey returns the reply's idempotency key, the same for every attempt in every process. A retried dead letter
// has a new time, so its answer's key differs from the notice's.
func ReplyKey(key sessions.Key, e sessions.Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", key, e.ID, e.CreatedAt.UnixMicro()))
	return KeyPrefix + hex.EncodeToString(sum[:12])
}

// NoticeKey is for a notice about the turn that begins with e.
func NoticeKey(key sessions.Key, e sessions.Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "turn\x00%s\x00%d\x00%d", key, e.ID, e.CreatedAt.UnixMicro()))
	return KeyPrefix + hex.EncodeToString(sum[:12])
}

// pressKey is of this process, and stored nowhere. Another process gives the same press another id, and one turn answers both.
var pressKey = []byte(rand.Text())

// StopID is for the message of a press of a card's stop button, the same for all presses of a person while the card's turn begins with
// an event. It outlives an erasure of the person, and a hash of their id without a secret names them to all who know the id.
func StopID(event int64, by sessions.UserID) sessions.MessageID { return stopID(pressKey, event, by) }

func stopID(key []byte, event int64, by sessions.UserID) sessions.MessageID {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(stopPrefix(event) + string(by)))
	return sessions.MessageID(stopPrefix(event) + hex.EncodeToString(h.Sum(nil)[:12]))
}

// DecisionID is for the message of a press that decides on calls of tools, by the rules of [StopID]. Presses of a minute are one: a later
// one tries again, because the first may have decided nothing.
func DecisionID(event int64, by sessions.UserID, button sessions.Button, at time.Time) sessions.MessageID {
	return sessions.MessageID(fmt.Sprintf("%s-%d-%s", button, at.Unix()/60, StopID(event, by)))
}

func stopPrefix(event int64) string { return fmt.Sprintf("stop-%d-", event) }

// StopsTurnOf reports whether a press is one of the stop button of a card whose turn begins with the message. Rows without a
// [sessions.Press] name the turn in their id, by the event or by the card's key.
func StopsTurnOf(press, e sessions.Event) bool {
	if p := press.Message.Press; p != nil {
		return p.Button == sessions.ButtonStop && p.Turn == e.ID
	}
	id := string(press.MsgID)
	return strings.HasPrefix(id, stopPrefix(e.ID)) || strings.HasPrefix(id, "stop-"+ReplyKey(e.Key, e)+"-")
}

// FileReplies are the replies of files behind a reply. The text of each is the file's own, or the reply's: an erasure of words in it takes
// the file too.
func FileReplies(behind sessions.Reply, files []sessions.File, lang string) (replies []sessions.Reply) {
	for i, f := range files {
		r := behind
		f.Lang, f.InText = lang, f.Text != ""
		r.Text = cmp.Or(f.Text, r.Text)
		r.Target.File, r.Target.Card, r.Target.Approve, r.Target.Late = &f, "", false, ""
		r.Target.Mentions, r.Target.Schedules = nil, nil
		sum := sha256.Sum256(fmt.Appendf(nil, "file\x00%s\x00%d", behind.Nonce, i))
		r.Nonce = KeyPrefix + hex.EncodeToString(sum[:12])
		replies = append(replies, r)
	}
	return replies
}

// KeyPrefix distinguishes our keys from those of other senders.
const KeyPrefix = "ebb-"
