package view

import (
	"cmp"
	"slices"
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
// no part of the conversation either. So do the bare word that stopped a turn, and a reminder, whose text the answer repeats. A
// scheduled message executes no command.
func (b *Builder) IsCommand(e sessions.Event) bool {
	if e.IsScheduled() {
		return e.Message.Scheduled.Kind == sessions.Remind || e.Message.Outcome == sessions.Limited
	}
	isApart := e.Message != nil && (e.Message.Outcome == sessions.Limited || e.Message.Outcome == sessions.StopDone)
	return isApart || b.cfg.Commands.IsCommand(b.OwnWords(e))
}

// LanguageWords decides the language of an answer: the sender's own words. A command in Latin letters says little about it, for its name
// is typed in any language, and so does a bare "ok" or "cancel". The text that the command keeps decides, then the conversation in the
// tail: the sender's messages, those of other people, and the answer to the last message that says little.
func (b *Builder) LanguageWords(tail []sessions.Event, e sessions.Event) string {
	own := b.OwnWords(e)
	if !b.saysLittle(e) {
		return own
	}
	if kept := wording.WordsOfCommand(b.cfg.Commands.Kept(own)); wording.LanguageOf(kept, "") != "" {
		return kept
	}
	others, answer := "", ""
	answers := false
	for _, t := range tail {
		switch {
		case t.Role == sessions.RoleUser:
			answers = b.saysLittle(t)
		case t.Role == sessions.RoleAssistant && answers && t.Content != sessions.ErasedText:
			answer = t.Content
		}
	}
	for _, t := range slices.Backward(b.WithoutCommands(tail)) {
		switch said := b.OwnWords(t); {
		case t.Role != sessions.RoleUser || t.IsScheduled() || b.saysLittle(t) || said == sessions.ErasedText || wording.LanguageOf(said, "") == "":
		case t.SenderID == e.SenderID:
			return said
		default:
			others = cmp.Or(others, said)
		}
	}
	return cmp.Or(others, answer, wording.WordsOfCommand(own))
}

// saysLittle reports whether a message is a command, or a bare yes or no, without Chinese words, names of people aside.
func (b *Builder) saysLittle(e sessions.Event) bool {
	words, commands := b.OwnWords(e), b.cfg.Commands
	return !e.IsScheduled() && (commands.IsCommand(words) || commands.IsYesOrNo(words)) && wording.LanguageOf(wording.WordsOfCommand(words), "") == "en"
}

// OwnWords returns the sender's own text without the quote.
func (b *Builder) OwnWords(e sessions.Event) string {
	if e.Message == nil {
		return e.Content
	}
	return strings.TrimPrefix(e.Content, b.Quoted(*e.Message))
}
