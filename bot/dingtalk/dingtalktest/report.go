package dingtalktest

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Entry is one line of the transcript.
type Entry struct {
	Seq  int       `json:"seq"`
	Time time.Time `json:"time"`
	// Kind is one of say, open, connect, push, ack, redeliver, lost, dropped, backlog, ping, disconnect, close, http,
	// reply, duplicate, fault, violation, clock, card, advice, emotion, malformed.
	Kind         string `json:"kind"`
	Route        string `json:"route,omitempty"`
	Conn         string `json:"conn,omitempty"`
	FrameID      string `json:"frameId,omitempty"`
	MsgID        string `json:"msgId,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	// Status is HTTP's or an ack's code.
	Status int    `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// String formats the entry as one line.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-10s", e.Time.Format("15:04:05.000"), e.Kind)
	for _, f := range []struct{ name, value string }{
		{"route", e.Route},
		{"conn", e.Conn},
		{"frame", e.FrameID},
		{"msg", e.MsgID},
		{"conv", e.Conversation},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " status=%d", e.Status)
	}
	if e.Detail != "" {
		b.WriteString(" " + e.Detail)
	}
	return b.String()
}

// The kinds of violations: a client's faults that DingTalk does not report.
const (
	AckUnknown            = "ack-unknown" // an ack for a frame that was never pushed
	AckTwice              = "ack-twice"
	AckLate               = "ack-late"             // an ack after the push timeout
	AckMissing            = "ack-missing"          // no ack although the connection was there
	AckLost               = "ack-lost"             // the client closed the connection with acks owed
	AckWrongConnection    = "ack-wrong-connection" // the ack came on another connection than the push
	AckMalformed          = "ack-malformed"        // the ack's JSON has not the shape of the protocol
	PingNotEchoed         = "ping-not-echoed"      // a ping was answered with other data
	PingUnanswered        = "ping-unanswered"      // a ping was not answered before the next
	ReplyTwice            = "reply-twice"          // the same reply was posted again for the same message
	ReplyWrongPlace       = "reply-wrong-place"    // to a conversation or person it cannot be for
	MentionNotInText      = "mention-not-in-text"  // an id in `at` without the literal @id in the text
	WebhookExpired        = "webhook-expired"
	WebhookUnknown        = "webhook-unknown" // a webhook that was never handed out
	EmotionTwice          = "emotion-twice"
	TokenWasted           = "token-wasted"   // a token was fetched though the last one was still good
	OpenMalformed         = "open-malformed" // connections/open without what it needs
	OpenTooOften          = "open-too-often"
	TicketReused          = "ticket-reused"           // a ticket was used twice or after its expiry
	DeafTooLong           = "deaf-too-long"           // no live connection for longer than Options.MaxDeaf
	CardAfterFinalize     = "card-after-finalize"     // a streaming call after the last one
	CardNotFinalized      = "card-not-finalized"      // left spinning
	CardCallbackSlow      = "card-callback-slow"      // a card callback answered after 2 s
	CardCallbackMalformed = "card-callback-malformed" // an answer to a click without a card's values in it
	CardBlank             = "card-blank"              // a card that ended shows no text, though it has or had one
	CardGUIDReused        = "card-guid-reused"        // two different streaming calls had one guid
	CardMixedWrites       = "card-mixed-writes"       // a variable was streamed after an update wrote it: the frames do not show
	CardBrokenMarkdown    = "card-broken-markdown"    // no whole Markdown
)

// The kinds of advice, which are in [Card.Findings] and are no violations.
const (
	CardOverLimit         = "card-over-limit"          // a variable beyond the documented limits
	CardUnknownVariable   = "card-unknown-variable"    // the template lacks the variable
	CardNoCallback        = "card-no-callback"         // a card whose clicks do not reach the bot by stream
	CardUpdatedInCallback = "card-updated-in-callback" // an update while a click waits for its answer
)

// Violation is one breach of the protocol by the client.
type Violation struct {
	Time         time.Time `json:"time"`
	Kind         string    `json:"kind"`
	Detail       string    `json:"detail"`
	Conn         string    `json:"conn,omitempty"`
	FrameID      string    `json:"frameId,omitempty"`
	MsgID        string    `json:"msgId,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	TrackID      string    `json:"outTrackId,omitempty"`
}

// String formats the violation as one line.
func (v Violation) String() string {
	e := Entry{Time: v.Time, Kind: v.Kind, Conn: v.Conn, FrameID: v.FrameID, MsgID: v.MsgID, Conversation: v.Conversation, Detail: v.Detail}
	return e.String()
}

func (s *core) noteLocked(e Entry) {
	s.seq++
	e.Seq, e.Time = s.seq, s.nowLocked()
	s.transcript = append(s.transcript, e)
	if n := s.opts.TranscriptLines; n > 0 && len(s.transcript) > n+n/4 {
		s.transcript = append([]Entry(nil), s.transcript[len(s.transcript)-n:]...)
	}
	if s.opts.Logf != nil {
		s.opts.Logf("%s", e.String())
	}
	s.wakeLocked()
}

func (s *core) violateLocked(v Violation) {
	v.Time = s.nowLocked()
	s.violations = append(s.violations, v)
	s.noteLocked(Entry{
		Kind: "violation", Conn: v.Conn, FrameID: v.FrameID, MsgID: v.MsgID, Conversation: v.Conversation,
		Detail: v.Kind + ": " + v.Detail,
	})
}

// Transcript lists all kept lines, oldest first.
func (s *core) Transcript() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Entry(nil), s.transcript...)
}

// Violations are the client's breaches of these kinds, or of all without kinds, oldest first, with overdue
// acknowledgements and cards left spinning.
func (s *Server) Violations(kinds ...string) []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append([]Violation(nil), s.violations...)
	all = append(all, s.overdueLocked()...)
	if len(kinds) == 0 {
		return all
	}
	var out []Violation
	for _, v := range all {
		for _, k := range kinds {
			if v.Kind == k {
				out = append(out, v)
			}
		}
	}
	return out
}

func (s *Server) overdueLocked() []Violation {
	var out []Violation
	now := s.nowLocked()
	for _, c := range s.conns {
		out = append(out, c.overdueClicksLocked(now)...)
		for p := range c.owed {
			if p.kind == pushBot && p.wantsAck && !p.lost && !p.missed && !p.sent.IsZero() && now.Sub(p.sent) > s.opts.AckDeadline {
				v := p.violation(AckMissing, fmt.Sprintf("no ack for %s", now.Sub(p.sent).Round(time.Millisecond)))
				v.Time = now
				out = append(out, v)
			}
		}
	}
	for _, c := range s.byID {
		if !c.done() && !c.recalled && s.opts.CardIdle > 0 && now.Sub(c.touched) > s.opts.CardIdle {
			out = append(out, Violation{
				Time: now, Kind: CardNotFinalized, Conversation: c.conversation, TrackID: c.id,
				Detail: fmt.Sprintf("card %s is %s since %s", c.id, c.state, now.Sub(c.touched).Round(time.Millisecond)),
			})
		}
	}
	return out
}

// Reply is one message of the bot.
type Reply struct {
	Conversation string `json:"conversation"`
	// MsgID is that of the used webhook's message; empty for the open API.
	MsgID   string `json:"msgId,omitempty"`
	MsgType string `json:"msgtype"`
	Title   string `json:"title,omitempty"`
	Text    string `json:"text"`
	// Media is the id of the picture or the file that it shows.
	Media string `json:"media,omitempty"`
	// AtUserIDs are the staff ids of `at`.
	AtUserIDs []string `json:"atUserIds,omitempty"`
	AtAll     bool     `json:"atAll,omitempty"`
	// Via is "webhook", "openapi", "card" or "custom".
	Via       string    `json:"via"`
	MsgUUID   string    `json:"msgUuid,omitempty"`
	RobotCode string    `json:"robotCode,omitempty"`
	Time      time.Time `json:"time"`
	// ProcessQueryKey names a message of the open API for quotes.
	ProcessQueryKey string `json:"processQueryKey,omitempty"`
	Recalled        bool   `json:"recalled,omitempty"`
	Bytes           int    `json:"bytes"`
}

type posts struct {
	*core
	replies  []Reply
	posted   map[string]int       // newest reply by conversation, robot and text
	lastSaid map[string]time.Time // per conversation
	edits    int                  // replies changed after they were posted
}

func (s *posts) postLocked(r Reply) {
	r.Time = s.nowLocked()
	s.repliedTwiceLocked(r, len(s.replies))
	s.replies = append(s.replies, r)
	s.noteLocked(Entry{Kind: "reply", MsgID: r.MsgID, Conversation: r.Conversation, Detail: r.Via + ": " + clip(r.Text)})
}

func (s *posts) editLocked(index int, text string) {
	r := &s.replies[index]
	if r.Text == text {
		return
	}
	r.Text, r.Bytes = text, len(text)
	s.edits++
	s.repliedTwiceLocked(*r, index)
}

// The same words for the same message are a repeat. If the way names no message, the same words are a repeat unless a
// person spoke in between.
func (s *posts) repliedTwiceLocked(r Reply, index int) {
	if r.Text == "" && r.Via == "card" {
		return // its text comes with an update
	}
	key := r.Conversation + "\x00" + r.RobotCode + "\x00" + r.Text
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

// WaitReply waits for a reply with the text; empty arguments match any.
func (s *posts) WaitReply(ctx context.Context, conversation, contains string) (Reply, error) {
	return s.WaitReplyAfter(ctx, conversation, contains, 0)
}

// WaitReplyAfter skips the first n replies to the conversation.
func (s *posts) WaitReplyAfter(ctx context.Context, conversation, contains string, n int) (Reply, error) {
	var found Reply
	what := fmt.Sprintf("a reply containing %q in conversation %q", contains, conversation)
	i, next, edits := 0, 0, 0 // the conversation's replies, the first unread one, and edits seen
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

// Replies are those to a conversation, or all when it is empty, oldest first.
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
