package view

import (
	"strings"

	"ebb/bot/wording"
	"ebb/sessions"
)

// Quoted returns the quote before a message's own words, or the time of its schedule; empty for none.
func (b *Builder) Quoted(m sessions.Message) string { return quoteLead(b.cfg.Name, m) }

func quoteLead(bot string, m sessions.Message) string {
	switch {
	case m.Scheduled != nil:
		return m.Scheduled.Lead()
	case m.Quote != nil:
		return m.Quote.Lead(bot)
	}
	return ""
}

// IsCommand reports whether a message has the form of a command. One that a limit kept from the model counts too: it is
// no part of the conversation either. So does a reminder, whose text the answer repeats. A scheduled message executes no command.
func (b *Builder) IsCommand(e sessions.Event) bool {
	if e.IsScheduled() {
		return e.Message.Scheduled.Kind == sessions.Remind || e.Message.Outcome == sessions.Limited
	}
	return e.Message != nil && e.Message.Outcome == sessions.Limited || b.cfg.Commands.IsCommand(b.OwnWords(e))
}

// LanguageWords decides the language of an answer: the sender's own words, and of a command those that are no names of
// people.
func (b *Builder) LanguageWords(e sessions.Event) string {
	if b.IsCommand(e) {
		return wording.WordsOfCommand(b.OwnWords(e))
	}
	return b.OwnWords(e)
}

// OwnWords returns the sender's own text without the quote.
func (b *Builder) OwnWords(e sessions.Event) string {
	if e.Message == nil {
		return e.Content
	}
	return strings.TrimPrefix(e.Content, b.Quoted(*e.Message))
}
