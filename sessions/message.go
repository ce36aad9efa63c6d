package sessions

import (
	"strings"
	"time"
)

// ConversationType tells a private chat from a group, in DingTalk's own words.
type ConversationType string

// The two kinds of conversation that DingTalk knows. An unknown one is treated as a group: more people may read it.
const (
	Private ConversationType = "1"
	Group   ConversationType = "2"
	Unknown ConversationType = ""
)

// Message is what a person said to the robot, decoded from a DingTalk frame. Its JSON form is stored with the event.
type Message struct {
	RobotCode         RobotCode        `json:"robot_code"`
	ConversationID    ConversationID   `json:"conversation_id"`
	ConversationType  ConversationType `json:"conversation_type"`
	ConversationTitle string           `json:"conversation_title,omitempty"`
	ID                MessageID        `json:"msg_id"`

	SenderID UserID `json:"sender_id"`          // StaffID where there is one, else the encrypted id
	StaffID  UserID `json:"staff_id,omitempty"` // empty for people outside the robot's organisation
	// EncryptedID is DingTalk's other id of a member of the robot's organisation; empty for people outside it.
	EncryptedID UserID `json:"-"`
	SenderNick  string `json:"sender_nick,omitempty"`  // chosen by the person: shown, never trusted
	Admin       bool   `json:"sender_admin,omitempty"` // DingTalk said that the sender administers the organisation

	// Kind is DingTalk's msgtype: text, richText, picture, audio, file, video or whatever came.
	Kind string `json:"kind"`
	// Text is what the model reads of the message: the words, with a line in brackets for everything that is not
	// words. It is empty where somebody only mentioned the robot.
	Text        string       `json:"text"`
	Quote       *Quote       `json:"quote,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	// OverQuota says that DingTalk withheld the content because the organisation's quota is used up.
	OverQuota bool `json:"over_quota,omitempty"`

	SentAt         time.Time `json:"sent_at"` // by DingTalk's clock; zero when the frame had none
	ReceivedAt     time.Time `json:"-"`       // when this process read it; zero: now
	Webhook        string    `json:"webhook,omitempty"`
	WebhookExpires time.Time `json:"webhook_expires,omitzero"`

	// Outcome is the result of the command that the message is. The storage sets it; no frame has it.
	Outcome Outcome `json:"outcome,omitempty"`
}

// Outcome is the result of a command that a later command refers to, or that is not to run again.
type Outcome string

// The outcomes of a command that erases. The zero value stands for any other message.
const (
	Previewed  Outcome = "previewed"   // the reply says how much of a person would be erased
	HalfErased Outcome = "half_erased" // a person is erased in part
	ErasedAll  Outcome = "erased"      // the erasure is committed; its turn may still be under way
)

// Quote is the message that a person replied to.
type Quote struct {
	ID       MessageID `json:"msg_id,omitempty"`
	SenderID UserID    `json:"sender_id,omitempty"`
	Nick     string    `json:"nick,omitempty"`
	Kind     string    `json:"kind,omitempty"`
	Text     string    `json:"text,omitempty"` // empty where the frame carried no words of it
	FromBot  bool      `json:"from_bot,omitempty"`
	SentAt   time.Time `json:"sent_at,omitzero"` // the quoted message, by DingTalk's clock

	// Who and Shown are the speaker and the words as the model reads them. A turn fills them in, from the log where that has
	// the message; they are empty before that.
	Who   string `json:"who,omitempty"`
	Shown string `json:"shown,omitempty"`
}

// Lead is what stands before a message's own words, in the content of its event: what it replies to. bot is the bot's name.
func (q Quote) Lead(bot string) string {
	switch {
	case q.Shown != "":
		return QuoteLead(q.Who, q.Shown)
	case q.Text == "":
		return ""
	case q.FromBot:
		return QuoteLead(bot, q.Text)
	}
	return QuoteLead(q.Nick, q.Text)
}

// QuoteLead is [Quote.Lead] of a speaker and words.
func QuoteLead(who, text string) string { return "[引用 " + who + ": " + text + "]\n" }

// MaxQuote bounds what is shown of a quoted message, in characters.
const MaxQuote = 500

// QuoteText is a text as a quote shows it: one line of bounded length, which does not end the quote before its end.
func QuoteText(text string) string {
	text = strings.Join(strings.Fields(strings.NewReplacer("[", "［", "]", "］").Replace(text)), " ")
	if rs := []rune(text); len(rs) > MaxQuote {
		return string(rs[:MaxQuote]) + "…"
	}
	return text
}

// Attachment is a file, picture, recording or film that came with a message. Code is exchanged for a download address.
type Attachment struct {
	Kind string `json:"kind"`
	Code string `json:"code,omitempty"`
	Name string `json:"name,omitempty"`
}

// Target is where a reply goes and whom it mentions. It is stored with the outbox row, so that any process can send it.
type Target struct {
	RobotCode        RobotCode        `json:"robot_code"`
	ConversationID   ConversationID   `json:"conversation_id"`
	ConversationType ConversationType `json:"conversation_type"`
	Webhook          string           `json:"webhook,omitempty"`
	WebhookExpires   time.Time        `json:"webhook_expires,omitzero"`
	// StaffID is the person to write to in a private chat when the webhook is of no use.
	StaffID UserID `json:"staff_id,omitempty"`
	// Mentions are the people whom a reply in a group mentions, in the order they asked.
	Mentions []Mention `json:"mentions,omitempty"`
	// Passing says that the reply's words are wiped once it is sent, or given up: they tell what must not be kept.
	Passing bool `json:"passing,omitempty"`
}

// Mention is one person whom a reply names.
type Mention struct {
	StaffID UserID `json:"staff_id,omitempty"` // empty for people outside the organisation: they are named, not notified
	Nick    string `json:"nick,omitempty"`
}
