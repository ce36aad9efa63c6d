package view

import (
	"ebb/compaction/tokens"
	"ebb/sessions"
)

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
