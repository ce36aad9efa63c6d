package view

import (
	"cmp"
	"sort"
	"strings"

	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// WithoutCommands removes commands and their answers.
func (b *Builder) WithoutCommands(events []sessions.Event) []sessions.Event {
	out := make([]sessions.Event, 0, len(events))
	command := false
	for _, e := range events {
		if e.Role == sessions.RoleUser {
			command = b.IsCommand(e)
		}
		if !command {
			out = append(out, e)
		}
	}
	return out
}

// Show prepares a view for requests to its model, which leave out commands and what the model refuses. See [Shrink].
func (b *Builder) Show(v *sessions.View) {
	v.Tail = b.WithoutCommands(v.Tail)
	b.leaveOut(v)
	b.Shrink(v.Session, v.Tail, 0)
}

// Shrink is [Shrink] in a session. A result of another program's tool is shortened to the limit of its server, too.
func (b *Builder) Shrink(s sessions.Session, events []sessions.Event, next int64) {
	limit := BodyLimit(b.Settings(s).Window.Usable())
	shrink(events, next, func(e sessions.Event) int {
		if e.Role != sessions.RoleTool {
			return limit
		}
		return min(limit, cmp.Or(b.opts.Outside.MaxResultTokens(e.ToolName), limit))
	})
}

// Shrink shortens oversized events to a quarter of a request. A note in each names the call that reads the whole. The
// rule depends on the event alone: its result never changes. Events without a number get theirs from next on.
func Shrink(events []sessions.Event, usable int, next int64) {
	shrink(events, next, func(sessions.Event) int { return BodyLimit(usable) })
}

func shrink(events []sessions.Event, next int64, limitOf func(sessions.Event) int) {
	for i, e := range events {
		limit := limitOf(e)
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

// ShownShare is a percentage of the shortened messages; 0 if none is shortened.
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

// BodyLimit bounds an event's body in a request, in tokens.
func BodyLimit(usable int) int { return max(256, usable/4) }

// State takes the size of the context in tokens.
func (b *Builder) State(v sessions.View, size int) compaction.State {
	s := compaction.State{Session: v.Session, Tail: v.Tail, Fixed: b.Fixed(v), Tokens: size, Now: b.shared.Now()}
	for _, a := range v.Summaries {
		s.SummaryTokens += a.Tokens + tokens.MessageOverhead
	}
	return s
}

// Decide returns the due work on a view of the given tokens.
func (b *Builder) Decide(v sessions.View, tokens int) compaction.Need {
	set := b.Settings(v.Session)
	if !set.Enabled {
		return compaction.Need{Hard: tokens >= set.Window.Usable()}
	}
	return set.Policy.Decide(set.Window, b.State(v, tokens))
}

// TrimToPolicy returns at most as many raw events as the policy shows: more mean that compactions fail. A note
// replaces the oldest turns until a compaction summarizes them.
func (b *Builder) TrimToPolicy(v sessions.View) sessions.View {
	most := b.Settings(v.Session).Policy.ContextSize
	if most <= 0 || len(v.Tail) <= most {
		return v
	}
	for _, at := range compaction.TurnStarts(v.Tail) {
		if at > 0 && len(v.Tail)-at <= most {
			return b.omitOldest(v, at)
		}
	}
	return v
}

const gapIdentifiers = 12

func (b *Builder) language(id sessions.ConversationID) string {
	return cmp.Or(b.shared.Current.Language(id), b.shared.Languages.Preset)
}

// omitOldest puts a note in place of the first n events of the tail. Log and cursor stay, and the next compaction
// summarizes the whole range.
func (b *Builder) omitOldest(v sessions.View, n int) sessions.View {
	v.Gap = strings.TrimSpace(v.Gap + "\n" + summarize.GapNote(v.Tail[:n], b.shared.Location, b.language(v.Session.ConversationID), gapIdentifiers))
	v.Tail = v.Tail[n:]
	return v
}

// TrimToFit drops pinned memory and the oldest turns until tokens fit. If even the newest turn is too large, it drops
// the summaries too.
func (b *Builder) TrimToFit(v sessions.View, fits func(sessions.View) bool) sessions.View {
	cuts := append(compaction.TurnStarts(v.Tail), len(v.Tail))
	from := func(i int) sessions.View {
		if cuts[i] == 0 {
			return v
		}
		short := b.omitOldest(v, cuts[i])
		short.Session.Pinned = ""
		return short
	}
	// The size falls with each dropped event.
	i := sort.Search(len(cuts), func(i int) bool { return fits(from(i)) })
	if i < len(cuts) {
		return from(i)
	}
	v = from(len(cuts) - 1)
	v.Session.Pinned, v.Summaries = "", nil
	return v
}
