// Package frame reads what DingTalk sends: a message of a person, and the press of a button. Decoding is lenient, since DingTalk's own samples
// deviate from the documented types.
package frame

import (
	"errors"

	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// ErrOwn refuses a message of the bot itself.
var ErrOwn = errors.New("the bot sent the message itself")

var (
	errUnreadable = errors.New("the frame holds no JSON object")
	errNoMessage  = errors.New("the frame has no usable message id")
	errNoPlace    = errors.New("the frame has no usable conversation id")
)

// overQuota is DingTalk's marker of withheld content.
const overQuota = "20001"

// Decode fails only for a message without message id or conversation id, which can't be stored. ErrOwn is a message
// of the bot itself, which gets no answer. robot is the default robot code.
func Decode(data string, robot sessions.RobotCode) (sessions.Message, error) {
	o, err := value.Parse(data)
	if err != nil {
		return sessions.Message{}, errUnreadable
	}
	m := sessions.Message{
		RobotCode:         robot,
		ConversationID:    sessions.ConversationID(o.Str("conversationId", "openConversationId")),
		ConversationTitle: value.Clip(value.OneLine(o.Str("conversationTitle")), 200),
		ID:                sessions.MessageID(o.Str("msgId", "openMsgId")),
		StaffID:           sessions.UserID(boundedID(o.Str("senderStaffId"))),
		SenderID:          sessions.UserID(boundedID(o.Str("senderStaffId", "senderId", "senderUnionId"))),
		SenderNick:        value.Clip(value.OneLine(o.Str("senderNick")), 100),
		Admin:             o.Flag("isAdmin"),
		SentAt:            o.Millis("createAt"),
		Webhook:           o.Str("sessionWebhook"),
		WebhookExpires:    o.Millis("sessionWebhookExpiredTime"),
		OverQuota:         o.Str("errorCode", "errCode") == overQuota,
	}
	org, own := o.Str("senderCorpId"), o.Str("chatbotCorpId")
	colleague := org != "" && org == own
	m.Organization = boundedID(own)
	m.External = !colleague && (m.StaffID == "" || org != "" && own != "")
	if colleague { // a former member keeps no rights of either id
		m.EncryptedID = sessions.UserID(boundedID(o.Str("senderId")))
	}
	if r := boundedID(o.Str("robotCode")); r != "" {
		m.RobotCode = sessions.RobotCode(r)
	}
	if m.ID == "" || len(m.ID) > maxID {
		return sessions.Message{}, errNoMessage
	}
	if bot := o.Str("chatbotUserId"); bot != "" && m.StaffID == "" && o.Str("senderId") == bot {
		return sessions.Message{}, ErrOwn
	}
	if m.ConversationID == "" || len(m.ConversationID) > maxID {
		return sessions.Message{}, errNoPlace
	}
	m.ConversationType = conversationType(o)
	fillMessage(&m, o)
	return m, nil
}

func fillMessage(m *sessions.Message, o value.Object) {
	bot := o.Str("chatbotUserId")
	body := bodyOf(o)
	m.Kind = kindOf(o, body)
	if m.OverQuota {
		return
	}
	at := mentionsOf(o, bot)
	m.Text, m.Attachments = render(m.Kind, body, at)
	if at.ours || m.ConversationType == sessions.Private {
		m.Text = commandBehind(m.Text)
	}
	m.Mentioned = at.people
	quote, attached := quoteOf(o, body, bot)
	for i := range attached {
		attached[i].Quoted = true
	}
	m.Quote, m.Attachments = quote, append(m.Attachments, attached...)
}

// Titles and mentions exist in groups only. Only an explicit type makes a conversation private.
func conversationType(o value.Object) sessions.ConversationType {
	switch t := sessions.ConversationType(o.Str("conversationType")); t {
	case sessions.Private, sessions.Group:
		return t
	}
	if o.Str("conversationTitle") != "" || o.Has("isInAtList") || len(o.List("atUsers")) > 0 {
		return sessions.Group
	}
	return sessions.Unknown
}
