package view

import (
	"strings"

	"ebb/sessions"
)

// Quoted returns the text before a message's own words: the quote of the message that it replies to. It is empty for
// other messages.
func (b *Builder) Quoted(m sessions.Message) string { return quoteLead(b.cfg.Name, m) }

// quoteLead is [Builder.Quoted] for the bot's name.
func quoteLead(bot string, m sessions.Message) string {
	if m.Quote == nil {
		return ""
	}
	return m.Quote.Lead(bot)
}

// OwnWords returns the sender's own text without the quote. Commands and the sender's language are found there.
func (b *Builder) OwnWords(e sessions.Event) string {
	if e.Message == nil {
		return e.Content
	}
	return strings.TrimPrefix(e.Content, b.Quoted(*e.Message))
}
