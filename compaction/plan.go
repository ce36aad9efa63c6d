package compaction

import (
	"errors"
	"time"

	"ebb/sessions"
)

// Need says what a context calls for.
type Need struct {
	Flush   bool
	Compact bool
	Hard    bool // a request would not fit: do it before the next call
}

// Assess decides from the size of the context, in tokens, what it needs. It looks at state alone, so that the same
// question has the same answer in every process.
func (p Policy) Assess(s sessions.Session, w Window, tokens int, now time.Time) Need {
	n := Need{Hard: tokens >= w.Usable()}
	rested := tokens >= s.RearmTokens && !now.Before(s.CompactRetryAt)
	n.Compact = n.Hard || p.Tokens && tokens >= w.Trigger() && rested
	n.Flush = p.Flush && tokens >= w.FlushAt() && s.FlushEpoch != s.CompactionCount && s.FlushFailures < MaxFlushFailures
	return n
}

// MaxFlushFailures is how many failed flushes in a row end the attempts of a cycle: the range stays owed.
const MaxFlushFailures = 3

// Cut is a planned compaction: the events of the tail before Index leave the view, those from it on stay.
type Cut struct {
	Index   int
	Through int64 // Seq of the last event that leaves
	Source  int   // tokens of what leaves
	Recent  int   // tokens of what stays
}

// Why there is nothing to compact. Neither is a failure: no model is asked, and asking again before the context has
// changed is of no use.
var (
	ErrAllRecent       = errors.New("everything in the view is recent")
	ErrSystemDominates = errors.New("system_dominates: system prompt, tools and pinned memory leave no room for a conversation")
)

// Plan says which part of the tail leaves, with fixed tokens of system prompt, tools and pinned memory in the view, and
// standing tokens of the summary that the new one continues: where that is long, less stays raw.
// The cut always lies before a user's message that begins a turn, so that a tool call is never parted from its
// results, and the newest turn always stays. Where nothing can leave, the error is ErrAllRecent, or ErrSystemDominates
// where no cut would make room.
func (p Policy) Plan(w Window, tail []sessions.Event, fixed, standing int) (Cut, error) {
	available := w.Available(fixed)
	starts := TurnStarts(tail)
	switch {
	case len(tail) == 0:
		return Cut{}, ErrAllRecent
	case available <= 0:
		return Cut{}, ErrSystemDominates
	case len(starts) < 2:
		return Cut{}, ErrAllRecent
	}
	budget := min(int(p.TailShare*float64(available)), available-standing)
	keep, recent, turns := len(tail), 0, 0
	for i := len(starts) - 1; i > 0; i-- {
		turn := TokensOf(tail[starts[i]:keep])
		if turns >= max(1, p.TailTurns) && recent+turn > budget {
			break
		}
		keep, recent, turns = starts[i], recent+turn, turns+1
	}
	gone := tail[:keep]
	return Cut{Index: keep, Through: gone[len(gone)-1].Seq, Source: TokensOf(gone), Recent: recent}, nil
}

// TurnStarts lists the indices at which turns begin: user messages that follow something else than a user message,
// since several that waited are answered together. What comes before the first is no turn of its own.
func TurnStarts(events []sessions.Event) []int {
	var starts []int
	var before sessions.Role
	for i, e := range events {
		if i == 0 || e.Role == sessions.RoleUser && before != sessions.RoleUser {
			starts = append(starts, i)
		}
		before = e.Role
	}
	return starts
}

// TokensOf is what events take in a request, their messages' overhead included.
func TokensOf(events []sessions.Event) int {
	n := 0
	for _, e := range events {
		n += e.Tokens + MessageOverhead
	}
	return n
}
