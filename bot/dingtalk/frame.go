package dingtalk

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/sessions"
)

var (
	errUnreadable = errors.New("the frame holds no JSON object")
	errNoMessage  = errors.New("the frame has no usable message id")
	errOwn        = errors.New("the bot sent the message itself")
	errNoPlace    = errors.New("the frame has no usable conversation id")
)

// maxID bounds ids in bytes, as indexes require.
const maxID = 512

// overQuota is DingTalk's marker of withheld content.
const overQuota = "20001"

// decode fails only for a message without message id or conversation id, which can't be stored. errOwn is a message
// of the bot itself, which gets no answer. robot is the default robot code.
func decode(data string, robot sessions.RobotCode) (sessions.Message, error) {
	o, err := parse(data)
	if err != nil {
		return sessions.Message{}, errUnreadable
	}
	m := sessions.Message{
		RobotCode:         robot,
		ConversationID:    sessions.ConversationID(o.str("conversationId", "openConversationId")),
		ConversationTitle: clipRunes(oneLine(o.str("conversationTitle")), 200),
		ID:                sessions.MessageID(o.str("msgId", "openMsgId")),
		StaffID:           sessions.UserID(boundedID(o.str("senderStaffId"))),
		SenderID:          sessions.UserID(boundedID(o.str("senderStaffId", "senderId", "senderUnionId"))),
		SenderNick:        clipRunes(oneLine(o.str("senderNick")), 100),
		Admin:             o.flag("isAdmin"),
		SentAt:            o.millis("createAt"),
		Webhook:           o.str("sessionWebhook"),
		WebhookExpires:    o.millis("sessionWebhookExpiredTime"),
		OverQuota:         o.str("errorCode", "errCode") == overQuota,
	}
	org, own := o.str("senderCorpId"), o.str("chatbotCorpId")
	colleague := org != "" && org == own
	m.Organization = boundedID(own)
	m.External = !colleague && (m.StaffID == "" || org != "" && own != "")
	if colleague { // a former member keeps no rights of either id
		m.EncryptedID = sessions.UserID(boundedID(o.str("senderId")))
	}
	if r := boundedID(o.str("robotCode")); r != "" {
		m.RobotCode = sessions.RobotCode(r)
	}
	if m.ID == "" || len(m.ID) > maxID {
		return sessions.Message{}, errNoMessage
	}
	if bot := o.str("chatbotUserId"); bot != "" && m.StaffID == "" && o.str("senderId") == bot {
		return sessions.Message{}, errOwn
	}
	if m.ConversationID == "" || len(m.ConversationID) > maxID {
		return sessions.Message{}, errNoPlace
	}
	m.ConversationType = conversationType(o)
	fillMessage(&m, o)
	return m, nil
}

func fillMessage(m *sessions.Message, o object) {
	bot := o.str("chatbotUserId")
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
func conversationType(o object) sessions.ConversationType {
	switch t := sessions.ConversationType(o.str("conversationType")); t {
	case sessions.Private, sessions.Group:
		return t
	}
	if o.str("conversationTitle") != "" || o.has("isInAtList") || len(o.list("atUsers")) > 0 {
		return sessions.Group
	}
	return sessions.Unknown
}

// Text messages have it in text, others in content.
func bodyOf(o object) object {
	if t := wordsObject(o["text"]); t != nil && (!o.has("content") || strings.EqualFold(o.str("msgtype", "msgType"), "text")) {
		return t
	}
	return wordsObject(o["content"])
}

// wordsObject accepts an object, an object in a string, or a plain string.
func wordsObject(v any) object {
	if m := asObject(v); m != nil {
		return m
	}
	switch v := v.(type) {
	case []any:
		return object{"richText": v}
	default:
		if s := asString(v); s != "" {
			return object{"content": s}
		}
	}
	return nil
}

func kindOf(o, body object) string {
	if k := clipRunes(oneLine(o.str("msgtype", "msgType")), 64); k != "" {
		return k
	}
	switch {
	case len(body.list("richText")) > 0:
		return "richText"
	case body.has("recognition"):
		return "audio"
	case body.has("fileName"):
		return "file"
	case body.has("videoType"):
		return "video"
	case body.has("downloadCode") || body.has("pictureDownloadCode"):
		return "picture"
	case body.str("content", "text") != "" || o.has("text"):
		return "text"
	}
	return "unknown"
}

// boundedID drops ids that are too long.
func boundedID(s string) string {
	if len(s) > maxID {
		return ""
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

type mentions struct {
	bot    string            // encrypted id
	ours   bool              // the robot is mentioned, or the frame has no list
	alone  bool              // only the robot is mentioned
	people []sessions.UserID // without the robot
}

// maxMentioned bounds the people of a message.
const maxMentioned = 50

// mentionsOf reads who is mentioned. Newer clients leave the names out of the text.
func mentionsOf(o object, bot string) mentions {
	at := mentions{bot: bot}
	users := o.list("atUsers")
	at.ours = bot == "" || len(users) == 0
	if o.flag("isAtAll") {
		at.people = append(at.people, sessions.Everyone)
	}
	for _, u := range users {
		one := asObject(u)
		if bot != "" && one.str("dingtalkId") == bot {
			at.ours, at.alone = true, len(users) == 1
			continue
		}
		id := sessions.UserID(boundedID(one.str("staffId", "dingtalkId")))
		if id != "" && !slices.Contains(at.people, id) && len(at.people) < maxMentioned {
			at.people = append(at.people, id)
		}
	}
	return at
}

// isMention reports whether a text is one mention and nothing else.
func isMention(text string) bool {
	text = strings.TrimSpace(text)
	if slash := strings.IndexAny(text, "/／"); slash > 0 && (isHanBehind(text[slash:]) || isWord(text[slash:])) {
		return false
	}
	return hasAt(text) && strings.IndexFunc(text, unicode.IsSpace) < 0 && utf8.RuneCountInString(text) > 1
}

func hasAt(text string) bool { return strings.HasPrefix(text, "@") || strings.HasPrefix(text, "＠") }

func beginsCommand(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "／")
}

// commandBehind drops the mentions before a command. A text with other words before the slash stays as it is.
func commandBehind(text string) string {
	rest := strings.TrimSpace(text)
	for hasAt(rest) {
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if glued := strings.IndexAny(rest, "/／"); glued > 0 && (end < 0 || glued < end) &&
			(isHanBehind(rest[glued:]) || isWord(rest[glued:]) && rest == strings.TrimSpace(text)) {
			end = glued
		}
		if end < 0 {
			return text
		}
		rest = strings.TrimSpace(rest[end:])
	}
	if beginsCommand(rest) {
		return rest
	}
	return text
}

// isWord reports whether a slash and one Latin word are the rest of a text: "@Ebb/help".
func isWord(slash string) bool {
	_, n := utf8.DecodeRuneInString(slash)
	return len(slash) > n && strings.Trim(slash[n:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// isHanBehind excludes names such as @types/node.
func isHanBehind(slash string) bool {
	_, n := utf8.DecodeRuneInString(slash)
	r, _ := utf8.DecodeRuneInString(slash[n:])
	return unicode.Is(unicode.Han, r)
}
