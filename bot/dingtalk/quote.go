package dingtalk

import (
	"cmp"
	"strings"

	"ebb/sessions"
)

const maxQuoteDepth = 3

// quoteOf knows all shapes: beside the words, at the top, older ones, and a bare id.
func quoteOf(o, body object, bot string) (*sessions.Quote, []sessions.Attachment) {
	original := sessions.MessageID(boundedID(o.str("originalMsgId")))
	for _, from := range []object{body, o.obj("text"), o.obj("content"), o} {
		if r := firstObject(from.obj("repliedMsg"), from.obj("quoteMessage")); r != nil {
			q, files := readQuote(r, bot, maxQuoteDepth)
			q.ID = cmp.Or(q.ID, original)
			q.Card = clipRunes(o.str("originalProcessQueryKey"), maxCarrier)
			return &q, files
		}
		if text := quotedWords(from["quoteContent"]); text != "" {
			return &sessions.Quote{ID: original, Text: text}, nil
		}
	}
	if original != "" || body.flag("isReplyMsg") {
		return &sessions.Quote{ID: original, Card: clipRunes(o.str("originalProcessQueryKey"), maxCarrier)}, nil
	}
	return nil, nil
}

// readQuote reads a quoted message and, down to a depth, the one that this quotes. DingTalk names the same field differently in older
// frames.
func readQuote(r object, bot string, depth int) (sessions.Quote, []sessions.Attachment) {
	body := wordsObject(r["content"])
	if body == nil {
		body = wordsObject(r["text"])
	}
	sender := boundedID(r.str("senderStaffId", "senderId"))
	q := sessions.Quote{
		ID:       sessions.MessageID(boundedID(r.str("msgId", "messageId"))),
		SenderID: sessions.UserID(sender),
		Nick:     clipRunes(oneLine(r.str("senderNick", "nick")), 100),
		Kind:     kindOf(r, body),
		FromBot:  bot != "" && (sender == bot || r.str("senderId") == bot),
		SentAt:   r.millis("createdAt", "createAt", "sendTime"),
	}
	if q.Mentioned = mentionsOf(r, bot).people; q.Mentioned == nil {
		q.Mentioned = mentionsOf(body, bot).people
	}
	var files []sessions.Attachment
	// The frame lacks a card's words; a text in their place would prevent the look-up.
	if len(body) > 0 || !strings.EqualFold(q.Kind, "interactiveCard") && q.Kind != "text" && q.Kind != "unknown" {
		q.Text, files = render(q.Kind, body, mentions{bot: bot})
	}
	if inner := firstObject(body.obj("repliedMsg"), r.obj("repliedMsg"), r.obj("quoteMessage")); inner != nil && depth > 1 {
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
	if o := asObject(v); o != nil {
		return anyWords(o)
	}
	return asString(v)
}

func firstObject(list ...object) object {
	for _, o := range list {
		if o != nil {
			return o
		}
	}
	return nil
}
