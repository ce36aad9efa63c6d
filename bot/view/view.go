package view

import (
	"sort"
	"strings"

	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// Talk leaves commands, and what they told, out of events: they are no part of the conversation.
func (b *Builder) Talk(events []sessions.Event) []sessions.Event {
	var out []sessions.Event
	command := false
	for _, e := range events {
		if e.Role == sessions.RoleUser {
			command = wording.IsCommand(b.OwnWords(e))
		}
		if !command {
			out = append(out, e)
		}
	}
	return out
}

// Show prepares the tail of a view for a request: the conversation, with bodies that leave room for each other.
func (b *Builder) Show(v *sessions.View) {
	v.Tail = b.Talk(v.Tail)
	Shrink(v.Tail, b.Settings(v.Session).Window.Usable(), 0)
}

// Shrink shortens single events that would crowd out everything else: no body takes more than a quarter of what a
// request may hold. The log keeps them whole, and a note in each names the call that reads it. The rule looks at the
// event alone, so that it decides the same way for ever. Events without a number get theirs from next on.
func Shrink(events []sessions.Event, usable int, next int64) {
	limit := BodyLimit(usable)
	for i, e := range events {
		if e.Tokens <= limit {
			continue
		}
		seq := e.Seq
		if seq == 0 {
			seq = next + int64(i)
		}
		bytes := int(float64(len(e.Content)) * float64(limit) / float64(e.Tokens) * 0.9)
		events[i].Content = tokens.Shorten(e.Content, bytes, sessions.ReadCall(seq))
		events[i].Tokens = limit
	}
}

// ShownShare is how many percent a request shows of those messages that it shows shortened; 0 where it shows all of them whole.
func ShownShare(whole, shown []sessions.Event) int {
	all, rest := 0, 0
	for i, e := range shown {
		if len(e.Content) < len(whole[i].Content) {
			all, rest = all+len(whole[i].Content), rest+len(e.Content)
		}
	}
	if all == 0 {
		return 0
	}
	return max(1, 100*rest/all)
}

// BodyLimit is how many tokens the body of one event takes in a request at most.
func BodyLimit(usable int) int { return max(256, usable/4) }

// State is what a decision about the view looks at, with a context of so many tokens.
func (b *Builder) State(v sessions.View, size int) compaction.State {
	s := compaction.State{Session: v.Session, Tail: v.Tail, Fixed: b.Fixed(v), Tokens: size, Now: b.now()}
	for _, a := range v.Summaries {
		s.SummaryTokens += a.Tokens + tokens.MessageOverhead
	}
	return s
}

// Decide says what the view, at so many tokens, calls for.
func (b *Builder) Decide(v sessions.View, tokens int) compaction.Need {
	set := b.Settings(v.Session)
	if !set.Enabled {
		return compaction.Need{Hard: tokens >= set.Window.Usable()}
	}
	return set.Policy.Decide(set.Window, b.State(v, tokens))
}

// Capped is the view with no more raw events than its policy lets it show. That there are more means that compactions
// fail: the oldest turns are left out, with a note, until one succeeds and tells them.
func (b *Builder) Capped(v sessions.View) sessions.View {
	most := b.Settings(v.Session).Policy.ContextSize
	if most <= 0 || len(v.Tail) <= most {
		return v
	}
	for _, at := range compaction.TurnStarts(v.Tail) {
		if at > 0 && len(v.Tail)-at <= most {
			return b.without(v, at)
		}
	}
	return v
}

// GapIdentifiers is how many identifiers the note of a gap repeats.
const GapIdentifiers = 12

// without is the view without the first n events of its tail, and with a note of them. Only the view: the log and the
// cursor stay as they are, and the next good compaction tells the whole range.
func (b *Builder) without(v sessions.View, n int) sessions.View {
	v.Gap = strings.TrimSpace(v.Gap + "\n" + summarize.GapNote(v.Tail[:n], b.Cfg.Location, b.Cfg.Language, GapIdentifiers))
	v.Tail = v.Tail[n:]
	return v
}

// Emergency drops pinned memory and the oldest turns from the view until tokens fit; where even the newest turn is too
// much, the summaries go too.
func (b *Builder) Emergency(v sessions.View, fits func(sessions.View) bool) sessions.View {
	cuts := append(compaction.TurnStarts(v.Tail), len(v.Tail))
	from := func(i int) sessions.View {
		if cuts[i] == 0 {
			return v
		}
		short := b.without(v, cuts[i])
		short.Session.Pinned = ""
		return short
	}
	// The less stays, the better it fits.
	i := sort.Search(len(cuts), func(i int) bool { return fits(from(i)) })
	if i < len(cuts) {
		return from(i)
	}
	v = from(len(cuts) - 1)
	v.Session.Pinned, v.Summaries = "", nil
	return v
}
