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

// LanguageWords decides the language of an answer: the sender's own words. Some say little about it: the name of a command in Latin
// letters, which is typed in any language, a bare "ok", code, an address. A few words in Latin letters say less than the sender's earlier
// messages. Then the conversation in the tail decides: other people's newest words, and the answer to the last message that says little.
func (b *Builder) LanguageWords(tail []sessions.Event, e sessions.Event) string {
	own, clear := b.telling(e)
	if clear {
		return own
	}
	earlier, others, answer, answered := "", "", "", ""
	for _, t := range slices.Backward(tail) {
		if t.Role == sessions.RoleAssistant && t.Content != sessions.ErasedText {
			answered = cmp.Or(answered, t.Content)
		}
		if t.Role != sessions.RoleUser {
			continue
		}
		said, isClear := b.telling(t)
		switch {
		case t.IsScheduled():
			said = ""
		case said == "":
			answer = cmp.Or(answer, answered)
		case b.IsCommand(t): // people type the names of either language
			said = ""
		}
		answered = ""
		switch {
		case said == "":
		case t.SenderID != e.SenderID:
			if isClear {
				others = cmp.Or(others, said)
			}
		case isClear:
			return said
		default:
			earlier = cmp.Or(earlier, said)
		}
	}
	return cmp.Or(own, earlier, others, answer, wording.WordsOfCommand(b.OwnWords(e)))
}

// telling returns the words of a message that show its language; empty: it says little. A command shows that of the text that it keeps,
// or of its own words behind the name.
func (b *Builder) telling(e sessions.Event) (words string, clear bool) {
	own, commands := b.OwnWords(e), b.cfg.Commands
	words = wording.WordsOfCommand(own)
	isCommand := !e.IsScheduled() && commands.IsCommand(own)
	if isCommand {
		if kept := wording.WordsOfCommand(commands.Kept(own)); wording.LanguageOf(kept, "") != "" {
			return kept, true
		}
		words = commands.Words(words)
	}
	lang, clear := wording.Judge(words)
	isBare := !e.IsScheduled() && commands.IsYesOrNo(own) && lang == "en"
	if lang == "" || own == sessions.ErasedText || isBare || isCommand && !clear {
		return "", false
	}
	return words, clear
}

// OwnWords returns the sender's own text without the quote.
func (b *Builder) OwnWords(e sessions.Event) string {
	if e.Message == nil {
		return e.Content
	}
	return strings.TrimPrefix(e.Content, b.Quoted(*e.Message))
}
