package dingtalktest

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Reply is one message that the bot put into a conversation.
type Reply struct {
	Conversation string `json:"conversation"`
	// MsgID is the message whose webhook was used; empty for replies by the open API.
	MsgID   string `json:"msgId,omitempty"`
	MsgType string `json:"msgtype"`
	Title   string `json:"title,omitempty"`
	Text    string `json:"text"`
	// AtUserIDs are the staff ids of `at`.
	AtUserIDs []string `json:"atUserIds,omitempty"`
	AtAll     bool     `json:"atAll,omitempty"`
	// Via is "webhook", "openapi", "card" or "custom".
	Via       string    `json:"via"`
	MsgUUID   string    `json:"msgUuid,omitempty"`
	RobotCode string    `json:"robotCode,omitempty"`
	Time      time.Time `json:"time"`
	// ProcessQueryKey names a message sent by the open API; a quote of it carries the key.
	ProcessQueryKey string `json:"processQueryKey,omitempty"`
	Recalled        bool   `json:"recalled,omitempty"`
	Bytes           int    `json:"bytes"`
}

// posts are what the bots put into the conversations.
type posts struct {
	*core
	replies  []Reply
	posted   map[string]int       // conversation and text -> index of the newest such reply
	lastSaid map[string]time.Time // per conversation
	edits    int                  // replies changed after they were posted
}

// postLocked puts a reply into its conversation and looks whether it is there already.
func (s *posts) postLocked(r Reply) {
	r.Time = s.nowLocked()
	s.repliedTwiceLocked(r, len(s.replies))
	s.replies = append(s.replies, r)
	s.noteLocked(Entry{Kind: "reply", MsgID: r.MsgID, Conversation: r.Conversation, Detail: r.Via + ": " + clip(r.Text)})
}

// editLocked gives a reply another text, as an update of a card that has ended does.
func (s *posts) editLocked(index int, text string) {
	r := &s.replies[index]
	if r.Text == text {
		return
	}
	r.Text, r.Bytes = text, len(text)
	s.edits++
	s.repliedTwiceLocked(*r, index)
}

// repliedTwiceLocked reports a reply that was posted before: the same words for the same message. If the way names no
// message, the same words count again unless a person spoke in between.
func (s *posts) repliedTwiceLocked(r Reply, index int) {
	if r.Text == "" && r.Via == "card" {
		return // its text comes with an update
	}
	key := r.Conversation + "\x00" + r.Text
	if i, ok := s.posted[key]; ok && i != index {
		old := s.replies[i]
		same := old.MsgID == r.MsgID
		if old.MsgID == "" || r.MsgID == "" {
			same = old.Time.After(s.lastSaid[r.Conversation])
		}
		if same {
			s.violateLocked(Violation{Kind: ReplyTwice, MsgID: r.MsgID, Conversation: r.Conversation, Detail: "posted again by " + r.Via + ": " + clip(r.Text)})
		}
	}
	s.posted[key] = index
}

// WaitReply waits for a reply to a conversation that contains the text; either may be empty for any.
func (s *posts) WaitReply(ctx context.Context, conversation, contains string) (Reply, error) {
	return s.WaitReplyAfter(ctx, conversation, contains, 0)
}

// WaitReplyAfter is WaitReply among the replies to the conversation from the nth on, counted from 0: with
// len(s.Replies(conversation)) from before, a new reply.
func (s *posts) WaitReplyAfter(ctx context.Context, conversation, contains string, n int) (Reply, error) {
	var found Reply
	what := fmt.Sprintf("a reply containing %q in conversation %q", contains, conversation)
	i, next, edits := 0, 0, 0 // replies of the conversation so far, the first that was not looked at, and edits seen
	err := s.wait(ctx, what, func() bool {
		if s.edits != edits {
			i, next, edits = 0, 0, s.edits
		}
		for ; next < len(s.replies); next++ {
			r := s.replies[next]
			if conversation != "" && r.Conversation != conversation {
				continue
			}
			i++
			if i > n && (strings.Contains(r.Text, contains) || strings.Contains(r.Title, contains)) {
				found = r
				return true
			}
		}
		return false
	})
	return found, err
}

// Replies are the replies to a conversation, or all when it is empty, oldest first.
func (s *posts) Replies(conversation string) []Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Reply
	for _, r := range s.replies {
		if conversation == "" || r.Conversation == conversation {
			out = append(out, r)
		}
	}
	return out
}
