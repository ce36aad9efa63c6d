package view

import (
	"slices"
	"strings"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// leaveOut puts notes in place of what the view's model refuses.
func (b *Builder) leaveOut(v *sessions.View) {
	v.Reads = b.Choices.Reads(v.Session)
	for i, s := range v.Summaries {
		if s.Withheld.From(v.Reads, sessions.WithheldBody) {
			v.Summaries[i].Text, v.Summaries[i].Tokens = sessions.WithheldText, sessions.WithheldTokens
		}
	}
	marked := func(e sessions.Event) bool { return len(e.Withheld) > 0 }
	if !slices.ContainsFunc(v.Tail, marked) {
		return
	}
	if slices.ContainsFunc(v.Tail, func(e sessions.Event) bool { return e.Withheld.From(v.Reads, sessions.WithheldTitle) }) {
		v.Session.Title = ""
	}
	nicks := sessions.WithheldNicks(v.Tail, v.Reads)
	v.Tail = sessions.Readable(v.Tail, v.Reads)
	for i := range v.Pending {
		if nicks[v.Pending[i].SenderNick] {
			v.Pending[i].SenderNick = ""
		}
	}
}

// WithoutSuspects leaves out the rows of a refused request until those at fault are found. Names may be at fault too.
// suspected reports whether there are any.
func (b *Builder) WithoutSuspects(v sessions.View, asked []sessions.Event) (_ sessions.View, _ []sessions.Event, suspected bool) {
	s := v.Session.Suspicion
	if !s.Concerns(v.Reads) {
		return v, asked, false
	}
	if s.Pinned {
		v.Session.Pinned = ""
	}
	if s.Summaries {
		v.Summaries = nil
	}
	v.Tail = slices.DeleteFunc(withoutNames(v.Tail), func(e sessions.Event) bool { return s.Covers(v.Reads, e.Seq) })
	v.Session.Title, v.Gap = "", strings.TrimSpace(v.Gap+"\n"+sessions.WithheldText)
	return v, withoutNames(asked), true
}

func withoutNames(events []sessions.Event) []sessions.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].SenderNick = ""
	}
	return events
}

// NotSuspected removes the hits under suspicion.
func NotSuspected(v sessions.View, found []memory.Hit) []memory.Hit {
	s := v.Session.Suspicion
	if !s.Concerns(v.Reads) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(h memory.Hit) bool {
		return s.CoversFact(v.Reads, h.MemoryID) || h.MemoryID == 0 && s.Covers(v.Reads, h.Seq) || s.CoversPage(v.Reads, h.Page)
	})
}

// Alone returns a view that shows nothing, and a question with its own words alone: no quote, and no name.
func (b *Builder) Alone(v sessions.View, question sessions.Event) (sessions.View, sessions.Event) {
	own := b.Words.OwnWords(question)
	if question.Message != nil && question.Message.Quote != nil {
		m := *question.Message
		m.Quote, m.Text = nil, own
		question.Message, question.Content = &m, own
	}
	question.SenderNick = ""
	s := v.Session
	s.Title, s.Pinned, s.Suspicion = "", "", nil
	return sessions.View{Session: s, Reads: v.Reads}, question
}

// Greeting returns a view and a message that no provider has a reason to refuse.
func (b *Builder) Greeting(v sessions.View, now time.Time) (sessions.View, sessions.Event) {
	e := sessions.Event{Role: sessions.RoleUser, Content: "你好", CreatedAt: now}
	v, e = b.Alone(v, e)
	v.Session.ConversationType = sessions.Private
	return v, e
}
