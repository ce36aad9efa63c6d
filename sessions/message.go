package sessions

import (
	"strings"
	"time"
)

// ConversationType distinguishes private chats from groups, in DingTalk's words.
type ConversationType string

// The conversation types. An unknown one counts as a group, which more people can read.
const (
	Private ConversationType = "1"
	Group   ConversationType = "2"
	Unknown ConversationType = ""
)

// Message is a person's message to the robot. Its JSON form is stored with the event.
type Message struct {
	RobotCode         RobotCode        `json:"robot_code"`
	ConversationID    ConversationID   `json:"conversation_id"`
	ConversationType  ConversationType `json:"conversation_type"`
	ConversationTitle string           `json:"conversation_title,omitempty"`
	ID                MessageID        `json:"msg_id"`
	// Organization is the robot's, by DingTalk's id. Ids of people are of one organization, and a press of a card's button names its own.
	Organization string `json:"organization,omitempty"`

	SenderID UserID `json:"sender_id"`          // StaffID if known, else the encrypted id
	StaffID  UserID `json:"staff_id,omitempty"` // empty for people outside the organisation
	// EncryptedID is DingTalk's other id of a member; empty for people outside the organisation.
	EncryptedID UserID `json:"encrypted_id,omitempty"`
	External    bool   `json:"external,omitempty"`     // a member of another organization, or of an unknown one
	SenderNick  string `json:"sender_nick,omitempty"`  // chosen by the person: shown, never trusted
	Admin       bool   `json:"sender_admin,omitempty"` // DingTalk marks the sender as an administrator

	// Kind is DingTalk's msgtype: text, richText, picture, audio, file, video or another.
	Kind string `json:"kind"`
	// Text is the message for the model: its words, with a line in brackets for other content. It is empty for a mere
	// mention.
	Text        string       `json:"text"`
	Quote       *Quote       `json:"quote,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	// Mentioned are the people whom a group's message mentions, without the robot: staff ids, or encrypted ids.
	Mentioned []UserID `json:"mentioned,omitempty"`
	// Press is the press of a button that the message stands for; nil for words. It gets no reply.
	Press *Press `json:"press,omitempty"`
	// Quiet marks a press of the stop button in rows that have no Press. Its card follows from the message's id.
	Quiet bool `json:"quiet,omitempty"`
	// OverQuota means that DingTalk withheld the content because the organisation's quota is used up.
	OverQuota bool `json:"over_quota,omitempty"`

	SentAt         time.Time `json:"sent_at"` // by DingTalk's clock; zero if the frame has none
	ReceivedAt     time.Time `json:"-"`       // time of reading; zero: now
	Webhook        string    `json:"webhook,omitempty"`
	WebhookExpires time.Time `json:"webhook_expires,omitzero"`

	// Scheduled says that a schedule made the message; nil for a message that a person sent.
	Scheduled *Scheduled `json:"scheduled,omitempty"`

	// Outcome is the result of the command that the message is. No frame has it.
	Outcome Outcome `json:"outcome,omitempty"`
	// Next is the first message of a turn that went on for others when this command ended it for its sender; 0: none.
	Next int64 `json:"next,omitempty"`
}

// Button is a button on a card.
type Button string

// The buttons.
const (
	ButtonStop    Button = "stop"
	ButtonGood    Button = "good"
	ButtonBad     Button = "bad"
	ButtonApprove Button = "approve"
	ButtonReject  Button = "reject"
)

// Press is a person's press of a button on a card.
type Press struct {
	Button Button `json:"button"`
	Turn   int64  `json:"turn"` // the event that the card's turn begins with
}

// Outcome is the result of a command that a later command refers to, or that is not to run again.
type Outcome string

// The outcomes. The zero value stands for any other message.
const (
	Previewed  Outcome = "previewed"   // the reply counts the rows that an erasure would affect
	HalfErased Outcome = "half_erased" // a person is erased in part
	Limited    Outcome = "limited"     // a limit kept the message, of any kind, from the model
	ErasedAll  Outcome = "erased"      // the erasure is committed; its turn may still be under way
	StopDone   Outcome = "stop_done"   // the message ended a turn, and is no part of the conversation
	Decided    Outcome = "decided"     // the command decided on a call of a tool, and is a part of the conversation
)

// Quote is the message that a person replied to.
type Quote struct {
	ID       MessageID `json:"msg_id,omitempty"`
	SenderID UserID    `json:"sender_id,omitempty"`
	Nick     string    `json:"nick,omitempty"`
	Kind     string    `json:"kind,omitempty"`
	Text     string    `json:"text,omitempty"` // empty if the frame has no words of it
	FromBot  bool      `json:"from_bot,omitempty"`
	SentAt   time.Time `json:"sent_at,omitzero"` // by DingTalk's clock
	Card     string    `json:"card,omitempty"`   // the platform's key of the quoted message; a card has it in place of words
	// Event is the quoted message in the log, whose files are the quote's too; 0: none, or it has no files.
	Event int64 `json:"event,omitempty"`
	// Mentioned is like that of [Message].
	Mentioned []UserID `json:"mentioned,omitempty"`

	// The speaker and the words for the model. A turn fills them in, from the log if it has the message.
	Who   string `json:"who,omitempty"`
	Shown string `json:"shown,omitempty"`
}

// FileWords stand for a file that the bot sent, in a quote.
func FileWords(name string) string { return "[文件: " + name + "]" }

// Lead is the line of the quoted message before a message's words. bot is the bot's name.
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
func QuoteLead(who, text string) string { return quoteStart + who + ": " + text + quoteEnd }

// The ends of a quote before a message's words. A shown quote has neither.
const (
	quoteStart = "[引用 "
	quoteEnd   = "]\n"
)

// MaxQuote bounds a shown quote, in characters.
const MaxQuote = 500

// maxQuotedRecord bounds a shown quote of a forwarded record, in characters: it has many messages.
const maxQuotedRecord = 4000

// QuoteText is a text inside a quote: one line of bounded length without closing brackets.
func QuoteText(text string) string { return quoteText(text, MaxQuote) }

// QuoteTextOf is [QuoteText] of a message of a kind.
func QuoteTextOf(kind, text string) string {
	if strings.EqualFold(kind, "chatRecord") {
		return quoteText(text, maxQuotedRecord)
	}
	return QuoteText(text)
}

func quoteText(text string, most int) string {
	text = strings.Join(strings.Fields(strings.NewReplacer("[", "［", "]", "］").Replace(text)), " ")
	if rs := []rune(text); len(rs) > most {
		return string(rs[:most]) + "…"
	}
	return text
}

// Attachment is a file, picture, recording or film. Code is exchanged for a download address.
type Attachment struct {
	Kind string `json:"kind"`
	Code string `json:"code,omitempty"`
	Name string `json:"name,omitempty"`
	// Other is a second code of the same picture, for a platform that refuses the first; empty: none.
	Other string `json:"other,omitempty"`
	// Quoted: it belongs to the quoted message. These stand behind the message's own.
	Quoted bool `json:"quoted,omitempty"`
}

// MaxAttachments bounds the attachments of a message that are read, and those of the messages of one turn.
const MaxAttachments = 20

// Files is the number of a message's attachments that are read.
func (m *Message) Files() (n int) {
	if m == nil {
		return 0
	}
	for _, a := range m.Attachments[:min(len(m.Attachments), MaxAttachments)] {
		if a.IsRead() {
			n++
		}
	}
	return n
}

// IsRead reports whether the content of an attachment is read. The words of a recording came with its message.
func (a Attachment) IsRead() bool { return a.Kind != "audio" && a.Kind != "voice" && a.Kind != "video" }

// MediaKind is the kind of a file, by its bytes.
type MediaKind string

// The kinds. Any other kind is a document, which is read as pages of text.
const (
	MediaUnknown MediaKind = ""
	MediaPicture MediaKind = "picture"
)

// MediaFault is the reason why an attachment has no content. Further ones are those of a document that can't be read.
type MediaFault string

// The faults of a download.
const (
	MediaExpired     MediaFault = "expired"     // the platform does not know the code any more, or the file is another robot's
	MediaUnavailable MediaFault = "unavailable" // the platform did not give the file out; a later turn tries again
	MediaTooLarge    MediaFault = "too_large"   // over agent.media.max_file
	MediaNoCalls     MediaFault = "no_calls"    // the month has no calls left for it
	MediaRefused     MediaFault = "refused"     // the address is none that may be read
	MediaUnsupported MediaFault = "unsupported" // a kind that is not read
)

// Media is an attachment of a message as it was fetched.
type Media struct {
	Event  int64 // the message that has it
	Place  int   // in the list of its attachments, from 0
	Kind   MediaKind
	Name   string
	Fault  MediaFault // empty: there is a content
	ID     string     // hash of the file; empty with a fault
	Bytes  int64      // size of the file
	Pages  int        // number in a document
	Tokens int        // size of a request that shows the whole

	Picture *Picture // the content of a picture; nil: not read, or not kept any more
	Text    string   // the whole content of a small document; empty: not read, or too large
	Quoted  bool     // it belongs to the quoted message
}

// Picture is an encoded picture, scaled for models.
type Picture struct {
	Type string // image/png or image/jpeg
	Body []byte
}

// MediaPage is a page of a document. Empty pages are left out, and count in the numbers.
type MediaPage struct {
	Number int // from 1
	Title  string
	Text   string
	// Withheld has the models that refuse the page of a kept file.
	Withheld Withheld
}

// PageID names a page of a document of a session.
type PageID struct {
	Media  string `json:"media"` // see [Media.ID]
	Number int    `json:"number"`
}

// Target is the destination of a reply, stored in the outbox row so that any process can send.
type Target struct {
	RobotCode        RobotCode        `json:"robot_code"`
	ConversationID   ConversationID   `json:"conversation_id"`
	ConversationType ConversationType `json:"conversation_type"`
	Webhook          string           `json:"webhook,omitempty"`
	WebhookExpires   time.Time        `json:"webhook_expires,omitzero"`
	// StaffID is the recipient in a private chat when the webhook fails.
	StaffID UserID `json:"staff_id,omitempty"`
	// Mentions are the people mentioned in a group, in the order of their questions.
	Mentions []Mention `json:"mentions,omitempty"`
	// Scheduled: a schedule asked, and no person.
	Scheduled bool `json:"scheduled,omitempty"`
	// Schedules are the numbers of these schedules.
	Schedules []int64 `json:"schedules,omitempty"`
	// Late follows the text of a reply to a schedule that could not be sent at its time.
	Late string `json:"late,omitempty"`
	// Passing wipes the reply's words after delivery or failure.
	Passing bool `json:"passing,omitempty"`
	// Card is the track id of the card that shows the beginning of the reply; empty: none.
	Card string `json:"card,omitempty"`
	// Approve gives the card the buttons of an approval in place of those of a rating.
	Approve bool `json:"approve,omitempty"`
	// File is sent in place of a text; nil: none.
	File *File `json:"file,omitempty"`
}

// FileKind is the form in which the platform shows a file.
type FileKind string

// The kinds.
const (
	FileImage FileKind = "image"
	FilePlain FileKind = "file"
)

// File is a file that a reply sends. The storage has its bytes until the reply is settled.
type File struct {
	ID   int64    `json:"id"`
	Name string   `json:"name"` // with an extension of the type that the bytes have
	Kind FileKind `json:"kind"`
	Lang string   `json:"lang"` // language of the words that replace it if it can't be sent
	// InText says that the text of its reply has the same content: people get that if the file can't be sent.
	InText bool `json:"in_text,omitempty"`
	// Source is the part of its turn that made it; Body are its bytes, at most [MaxFile]. Only a file that is not stored yet has them.
	Source string `json:"-"`
	Body   []byte `json:"-"`
	// Text is the same content as a text, for people whom the file can't reach; empty: there is none.
	Text string `json:"-"`
	// Media is the platform's id of the uploaded bytes; empty: not uploaded.
	Media string `json:"-"`
}

// MaxFile bounds the bytes of a sent file, as DingTalk does.
const MaxFile = 20 << 20

// Mention is one mentioned person.
type Mention struct {
	StaffID UserID `json:"staff_id,omitempty"` // empty for people outside the organisation, who are named but not notified
	Nick    string `json:"nick,omitempty"`
	Named   bool   `json:"named,omitempty"` // the text names the person, who is only notified
}

// ScheduleKind is the way in which a scheduled message is answered.
type ScheduleKind string

// The kinds of schedules.
const (
	Remind   ScheduleKind = "remind"  // the answer is the schedule's text; no model is asked
	AskModel ScheduleKind = "ask"     // the text goes to the model as a message of its creator
	Expired  ScheduleKind = "expired" // the wait of a call for an approval is over; there is no schedule
)

// Scheduled says that a schedule made a message. The times are in the zone of the bot.
type Scheduled struct {
	ID      int64        `json:"id"` // the schedule; 0 for Expired
	Kind    ScheduleKind `json:"kind"`
	DueAt   time.Time    `json:"due_at"`
	Next    time.Time    `json:"next,omitzero"`     // the time after it; zero for none
	Repeats bool         `json:"repeats,omitempty"` // it has or had further times
	Origin  string       `json:"origin,omitempty"`  // see Schedule.Origin; the schedule expires before its messages
	Call    string       `json:"call,omitempty"`    // the tool of an expired call, and Number its number
	Number  int64        `json:"number,omitempty"`
	Lang    string       `json:"lang,omitempty"` // the lead's language, en or zh; empty in messages of older releases: zh
}

// Accepted is the outcome of [Inbox.Accept] and [Inbox.AcceptHere].
type Accepted struct {
	New     bool  // false: stored before, by another call
	EventID int64 // 0: deleted with its session
	Lease   Lease // as it stands now: of owner, or of another living replica
	// Clash reports that the sender's encrypted id was accepted with another staff id before.
	Clash     bool
	Elsewhere bool // not stored
}

// Reply is a turn's reply to the conversation, for the outbox.
type Reply struct {
	Target Target
	Text   string // Markdown
	// Nonce is the key by which DingTalk recognises a reply that is sent again.
	Nonce string
}

// Outgoing is a row of the outbox.
type Outgoing struct {
	ID       int64
	Key      Key
	Reply    Reply
	Attempts int    // attempts begun, including the current one
	Refusals int    // attempts that DingTalk definitely refused, under a code without a cause
	Part     int    // parts of a split reply that are known to have arrived
	Joint    string // key of the message in which the last try sent it with others; empty: alone
	Maybe    bool   // an attempt may have arrived: its process died before the mark, or DingTalk's answer was lost
	Took     bool   // another process had it before this one
	Due      bool   // its pause is over, and the next attempt has not begun
	Via      string // openapi: it waits for calls to the open API
	Created  time.Time
	NextAt   time.Time
	Joined   []Reply
}
