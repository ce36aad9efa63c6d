package view

import (
	"strings"

	"ebb/sessions"
)

// Quoted is what stands before a message's own words: what it replies to. It is empty for one that replies to nothing.
func (b *Builder) Quoted(m sessions.Message) string { return quoteLead(b.Cfg.Name, m) }

// quoteLead is [Bot.quoted] of a bot with a name.
func quoteLead(bot string, m sessions.Message) string {
	if m.Quote == nil {
		return ""
	}
	return m.Quote.Lead(bot)
}

// OwnWords is what the sender of an event wrote, without what it replies to: commands and the sender's language are
// looked for there.
func (b *Builder) OwnWords(e sessions.Event) string {
	if e.Message == nil {
		return e.Content
	}
	return strings.TrimPrefix(e.Content, b.Quoted(*e.Message))
}
