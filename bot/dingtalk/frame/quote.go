package frame

import (
	"cmp"
	"strings"

	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// MaxCarrier bounds the key of a sent message in runes, where it is sent and where it is quoted.
const MaxCarrier = 200

const maxQuoteDepth = 3

// quoteOf knows all shapes: beside the words, at the top, older ones, and a bare id.
func quoteOf(o, body value.Object, bot string) (*sessions.Quote, []sessions.Attachment) {
	original := sessions.MessageID(boundedID(o.Str("originalMsgId")))
	for _, from := range []value.Object{body, o.Obj("text"), o.Obj("content"), o} {
		if r := firstObject(from.Obj("repliedMsg"), from.Obj("quoteMessage")); r != nil {
			q, files := readQuote(r, bot, maxQuoteDepth)
			q.ID = cmp.Or(q.ID, original)
			q.Card = value.Clip(o.Str("originalProcessQueryKey"), MaxCarrier)
			return &q, files
		}
		if text := quotedWords(from["quoteContent"]); text != "" {
			return &sessions.Quote{ID: original, Text: text}, nil
		}
	}
	if original != "" || body.Flag("isReplyMsg") {
		return &sessions.Quote{ID: original, Card: value.Clip(o.Str("originalProcessQueryKey"), MaxCarrier)}, nil
	}
	return nil, nil
}

// readQuote reads a quoted message and, down to a depth, the one that this quotes. DingTalk names the same field differently in older
// frames.
func readQuote(r value.Object, bot string, depth int) (sessions.Quote, []sessions.Attachment) {
	body := wordsObject(r["content"])
	if body == nil {
		body = wordsObject(r["text"])
	}
	sender := boundedID(r.Str("senderStaffId", "senderId"))
	q := sessions.Quote{
		ID:       sessions.MessageID(boundedID(r.Str("msgId", "messageId"))),
		SenderID: sessions.UserID(sender),
		Nick:     value.Clip(value.OneLine(r.Str("senderNick", "nick")), 100),
		Kind:     kindOf(r, body),
		FromBot:  bot != "" && (sender == bot || r.Str("senderId") == bot),
		SentAt:   r.Millis("createdAt", "createAt", "sendTime"),
	}
	if q.Mentioned = mentionsOf(r, bot).people; q.Mentioned == nil {
		q.Mentioned = mentionsOf(body, bot).people
	}
	var files []sessions.Attachment
	// The frame lacks a card's words; a text in their place would prevent the look-up.
	if len(body) > 0 || !strings.EqualFold(q.Kind, "interactiveCard") && q.Kind != "text" && q.Kind != "unknown" {
		q.Text, files = render(q.Kind, body, mentions{bot: bot})
	}
	if inner := firstObject(body.Obj("repliedMsg"), r.Obj("repliedMsg"), r.Obj("quoteMessage")); inner != nil && depth > 1 {
		if deeper, _ := readQuote(inner, bot, depth-1); deeper.Text != "" {
			q.Text = strings.TrimSpace(q.Text + "\n" + innerLead(deeper) + deeper.Text)
		}
	}
	return q, files
}

// innerLead names the speaker and the time of a quote within a quote, as far as they are known.
func innerLead(q sessions.Quote) string {
	lead := "[引用"
	if nick := sessions.Nick(q.Nick); nick != "" {
		lead += " " + nick
	}
	if !q.SentAt.IsZero() {
		lead += q.SentAt.In(recordZone).Format(" (2006-01-02 15:04 UTC+8)")
	}
	return lead + "] "
}

func quotedWords(v any) string {
	if o := value.ObjectOf(v); o != nil {
		return anyWords(o)
	}
	return value.String(v)
}

func firstObject(list ...value.Object) value.Object {
	for _, o := range list {
		if o != nil {
			return o
		}
	}
	return nil
}
