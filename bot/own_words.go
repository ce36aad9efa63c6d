package bot

import (
	"ebb/sessions"
	"strings"
)

// quoted is what stands before a message's own words: what it replies to. It is empty for one that replies to nothing.
func (b *Builder) quoted(m sessions.Message) string { return quoteLead(b.cfg.Name, m) }

// quoteLead is [Bot.quoted] of a bot with a name.
func quoteLead(bot string, m sessions.Message) string {
	if m.Quote == nil {
		return ""
	}
	return m.Quote.Lead(bot)
}

// ownWords is what the sender of an event wrote, without what it replies to: commands and the sender's language are
// looked for there.
func (b *Builder) ownWords(e sessions.Event) string {
	if e.Message == nil {
		return e.Content
	}
	return strings.TrimPrefix(e.Content, b.quoted(*e.Message))
}
