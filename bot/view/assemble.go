package view

import (
	"strings"
	"time"

	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Voices are the names in the requests on a view. Only messages of groups have names.
func (f *Frame) Voices(v sessions.View, asked []sessions.Event) llm.ShownNames {
	questions := make([]string, len(asked))
	for i, e := range asked {
		questions[i] = e.Content
	}
	voices := llm.ShownNames{Self: f.name, Question: strings.Join(questions, "\n")}
	if v.Session.ConversationType == sessions.Private {
		return voices
	}
	voices.Speakers, voices.Askers = speakersOf(v.Tail, asked), speakersOf(asked)
	return voices
}

func speakersOf(parts ...[]sessions.Event) (names []string) {
	type person struct {
		nick string
		id   sessions.UserID
	}
	seen := map[person]bool{}
	for _, events := range parts {
		for _, e := range events {
			if one := (person{e.SenderNick, e.SenderID}); e.Role == sessions.RoleUser && !seen[one] {
				seen[one] = true
				names = append(names, sessions.Speaker(e.SenderNick, e.SenderID))
			}
		}
	}
	return names
}

// Assemble builds a request: the system prompt, pinned memory with the summaries, the raw events, recalled data, then the question. Data
// never takes the place of the question. Assemble is pure. The parts that change least come first: a request extends the one before it,
// recalled data aside, and prompt caches of providers hold.
func (f *Frame) Assemble(v sessions.View, p compaction.Policy, recalled string, asked []sessions.Event) []llm.Message {
	msgs := make([]llm.Message, 0, 2*(len(v.Tail)+len(asked))+3) // with lines of time
	msgs = append(msgs, llm.Message{Role: "system", Content: f.System})
	data := func(text string) {
		if text != "" {
			msgs = append(msgs, llm.Message{Role: "user", Content: text})
		}
	}
	clock := clockwork{loc: f.Loc, session: v.Session, names: sessions.NewSpeakers(v.Tail, asked)}
	data(Reference(v, p))
	msgs = f.appendEvents(&clock, msgs, v.Tail)
	data(recalled)
	return repairToolCalls(f.appendEvents(&clock, msgs, asked))
}

// appendEvents appends the messages of events.
func (f *Frame) appendEvents(clock *clockwork, msgs []llm.Message, events []sessions.Event) []llm.Message {
	for _, e := range events {
		m, ok := f.message(e, clock.session.ConversationType)
		if !ok {
			continue
		}
		if line := clock.timestampBefore(e); line != "" {
			msgs = append(msgs, llm.Message{Role: "user", Content: line})
		}
		if text := fileTexts(clock.session.Key, e.Media); text != "" {
			msgs = append(msgs, llm.Message{Role: "user", Content: text})
		}
		if e.Role == sessions.RoleUser {
			clock.names.Add(e) // a later speaker changes no earlier message, or prompt caches would miss
			m.Content += clock.names.Note(e)
			attach(&m, f.name, e)
		}
		msgs = append(msgs, m)
	}
	return msgs
}

func (f *Frame) message(e sessions.Event, kind sessions.ConversationType) (llm.Message, bool) {
	switch e.Role {
	case sessions.RoleUser:
		return llm.Message{Role: "user", Content: f.renderMember(e, kind)}, true
	case sessions.RoleAssistant:
		return llm.Message{Role: "assistant", Content: e.Content, ToolCalls: e.ToolCalls}, true
	case sessions.RoleTool:
		return llm.Message{Role: "tool", Content: e.Content, ToolCallID: e.ToolCallID}, true
	}
	return llm.Message{}, false
}

// renderMember renders a member's text, in a group behind the speaker's name. Nothing in it passes for another speaker, nor
// for a quote other than the message's own.
func (f *Frame) renderMember(e sessions.Event, kind sessions.ConversationType) string {
	lead := ""
	if e.Message != nil {
		lead = quoteLead(f.name, *e.Message)
	}
	own, quotes := strings.CutPrefix(e.Content, lead)
	var text string
	switch {
	case quotes && lead != "":
		text = sessions.Body(strings.TrimSuffix(lead, "\n")) + "\n" + sessions.Lines(own)
	case kind == sessions.Private:
		return sessions.Lines(e.Content)
	default:
		text = sessions.Body(e.Content)
	}
	if kind == sessions.Private {
		return text
	}
	return sessions.Speaker(e.SenderNick, e.SenderID) + ": " + text
}

// clockwork writes lines with time and place when the minute has changed. It uses message times: a line never changes
// or moves, and cached prefixes hold.
type clockwork struct {
	loc     *time.Location
	session sessions.Session
	names   sessions.Speakers
	last    time.Time
}

func (c *clockwork) timestampBefore(e sessions.Event) string {
	at := e.CreatedAt.In(c.loc).Truncate(time.Minute)
	if e.Role != sessions.RoleUser || at.Equal(c.last) {
		return ""
	}
	first, newDay := c.last.IsZero(), c.last.YearDay() != at.YearDay() || c.last.Year() != at.Year()
	c.last = at
	switch {
	case first && c.session.ConversationType != sessions.Private && c.session.Title != "":
		return at.Format("[2006-01-02 15:04 Monday MST") + "; group " + sessions.Title(c.session.Title) + "]"
	case first || newDay:
		return at.Format("[2006-01-02 15:04 Monday MST]")
	}
	return at.Format("[15:04]")
}

// repairToolCalls makes a conversation acceptable to every provider. Results without their call are dropped; a call without its
// result gets [Interrupted].
func repairToolCalls(msgs []llm.Message) []llm.Message {
	out := make([]llm.Message, 0, len(msgs))
	open := map[string]bool{}
	var order []string
	settle := func() {
		for _, id := range order {
			if open[id] {
				out = append(out, llm.Message{Role: "tool", ToolCallID: id, Content: Interrupted})
			}
		}
		open, order = map[string]bool{}, nil
	}
	for _, m := range msgs {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				continue
			}
			open[m.ToolCallID] = false
			out = append(out, m)
			continue
		}
		settle()
		if m.Role == "assistant" && m.Content == "" && len(m.ToolCalls) == 0 {
			continue
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
			order = append(order, c.ID)
		}
		out = append(out, m)
	}
	settle()
	return out
}

// Interrupted replaces the result of an interrupted call.
const Interrupted = "interrupted: the call was cut off before its result was known. It may have had an effect; do not repeat it unless the user asks."
