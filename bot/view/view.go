package view

import (
	"cmp"
	"sort"
	"strings"

	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/sessions"
)

// Show prepares a view for requests to its model, which leave out commands and what the model refuses. See [Shrink].
func (b *Builder) Show(v *sessions.View) {
	v.Tail = b.Words.WithoutCommands(v.Tail)
	b.leaveOut(v)
	b.Shrink(v.Session, v.Tail, 0)
}

// Shrink is [Shrink] in a session. A result of another program's tool is shortened to the limit of its server, too.
func (b *Builder) Shrink(s sessions.Session, events []sessions.Event, next int64) {
	limit := BodyLimit(b.Choices.Settings(s).Window.Usable())
	shrink(events, next, func(e sessions.Event) int {
		if e.Role != sessions.RoleTool {
			return limit
		}
		return min(limit, cmp.Or(b.Frames.Outside().MaxResultTokens(e.ToolName), limit))
	})
}

// TrimToPolicy returns at most as many raw events as the policy shows: more mean that compactions fail. A note
// replaces the oldest turns until a compaction summarizes them.
func (b *Builder) TrimToPolicy(v sessions.View) sessions.View {
	most := b.Choices.Settings(v.Session).Policy.ContextSize
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
