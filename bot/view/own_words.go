package view

import (
	"cmp"
	"slices"
	"strings"

	"ebb/bot/parts"
	"ebb/bot/wording"
	"ebb/sessions"
)

// Commands recognizes commands, which are no part of a conversation. Kept returns the words of a command that stay its
// sender's words, such as the text of a reminder.
type Commands interface {
	IsCommand(text string) bool
	Kept(text string) string
	Words(text string) string
	IsYesOrNo(text string) bool
}

// Words separates people's own words from quotes and commands.
type Words struct {
	shared   *parts.Shared
	name     string // the bot's, in quotes of its answers
	commands Commands
}

// Quoted returns the quote before a message's own words, or the time of its schedule; empty for none.
func (w Words) Quoted(m sessions.Message) string { return quoteLead(w.nameOf(m.RobotCode), m) }

// nameOf is the name of a robot in quotes of its answers.
func (w Words) nameOf(robot sessions.RobotCode) string {
	return cmp.Or(w.shared.Current.Get().ForRobot(robot).Name, w.name)
}

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
// no part of the conversation either. So do the bare word that stopped a turn, a press of a button, and a reminder, whose text the answer repeats. A
// scheduled message executes no command. A decision on a call of a tool is a part of the conversation.
func (w Words) IsCommand(e sessions.Event) bool {
	if e.IsScheduled() {
		return e.Message.Scheduled.Kind == sessions.Remind || e.Message.Outcome == sessions.Limited
	}
	if e.Message != nil && e.Message.Outcome == sessions.Decided {
		return false // the call and its result stand behind it
	}
	isApart := e.Message != nil && (e.Message.Outcome == sessions.Limited || e.Message.Outcome == sessions.StopDone)
	return isApart || e.IsPress() || w.commands.IsCommand(w.OwnWords(e))
}

// languageEvents bounds the events that decide a language: older ones cost more than they say.
const languageEvents = 50

// LanguageWords decides the language of an answer: the sender's own words. Some say little about it: the name of a command in Latin
// letters, which is typed in any language, a bare "ok", code, an address. A few words in Latin letters say less than the sender's earlier
// messages. Then the newest events of the tail decide: other people's newest words, and the answer to the last message that says little.
// Each text is judged once.
func (w Words) LanguageWords(tail []sessions.Event, e sessions.Event) wording.Spoken {
	own := w.detectLanguage(e)
	if own.Clear {
		return own
	}
	var earlier, others wording.Spoken
	answer, answered := "", ""
	for _, t := range slices.Backward(tail[max(0, len(tail)-languageEvents):]) {
		if t.Role == sessions.RoleAssistant && t.Content != sessions.ErasedText {
			answered = cmp.Or(answered, t.Content)
		}
		if t.Role != sessions.RoleUser {
			continue
		}
		var said wording.Spoken
		if !t.IsScheduled() {
			if said = w.detectLanguage(t); said.Lang == "" {
				answer = cmp.Or(answer, answered)
			} else if w.IsCommand(t) { // people type the names of either language
				said = wording.Spoken{}
			}
		}
		answered = ""
		switch {
		case said.Lang == "":
		case t.SenderID != e.SenderID:
			if said.Clear {
				others = cmp.Or(others, said)
			}
		case said.Clear:
			return said
		default:
			earlier = cmp.Or(earlier, said)
		}
	}
	if said := cmp.Or(own, earlier, others); said.Lang != "" {
		return said
	}
	words := ""
	if !isFile(e) {
		words = wording.WordsOfCommand(w.OwnWords(e))
	}
	return wording.SpokenIn(cmp.Or(answer, words))
}

// isFile reports whether a message is a file alone, whose name says nothing about the language of its sender.
func isFile(e sessions.Event) bool {
	return e.Message != nil && (e.Message.Kind == "file" || e.Message.Kind == "picture")
}

// detectLanguage returns the language that the words of a message show; empty: it says little. A command shows that of the text that it keeps,
// or of its own words behind the name.
func (w Words) detectLanguage(e sessions.Event) wording.Spoken {
	if isFile(e) {
		return wording.Spoken{}
	}
	own, commands := w.OwnWords(e), w.commands
	words := wording.WordsOfCommand(own)
	isCommand := !e.IsScheduled() && commands.IsCommand(own)
	if isCommand {
		if kept := wording.SpokenIn(wording.WordsOfCommand(commands.Kept(own))); kept.Lang != "" {
			return wording.Spoken{Lang: kept.Lang, Clear: true}
		}
		words = commands.Words(words)
	}
	lang, clear := wording.Judge(words)
	isBare := !e.IsScheduled() && commands.IsYesOrNo(own) && lang == "en"
	if lang == "" || own == sessions.ErasedText || isBare || isCommand && !clear {
		return wording.Spoken{}
	}
	return wording.Spoken{Lang: lang, Clear: clear}
}

// OwnWords returns the sender's own text without the quote.
func (w Words) OwnWords(e sessions.Event) string {
	if e.Message == nil {
		return e.Content
	}
	return strings.TrimPrefix(e.Content, w.Quoted(*e.Message))
}

// WithoutCommands removes commands and their answers.
func (w Words) WithoutCommands(events []sessions.Event) []sessions.Event {
	out := make([]sessions.Event, 0, len(events))
	command := false
	for _, e := range events {
		if e.Role == sessions.RoleUser {
			command = w.IsCommand(e)
		}
		if !command {
			out = append(out, e)
		}
	}
	return out
}
