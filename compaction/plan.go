package compaction

import (
	"slices"
	"sort"

	"ebb/sessions"
)

// leastTail is the number of events that a tail in messages keeps above its token share.
const leastTail = 8

// Plan selects the part of the tail that leaves. w is in counted tokens, see [Window.Counted]. The cut lies at the
// start of a turn: calls keep their results, open calls and the newest turn stay. The error is ErrAllRecent or
// ErrBlockedHead if no event can leave, and ErrSystemDominates if no cut would make room.
func (p Policy) Plan(w Window, s State) (Cut, error) {
	starts, available := TurnStarts(s.Tail), w.Available(s.Fixed)
	switch {
	case len(starts) > 0 && available <= 0:
		return Cut{}, ErrSystemDominates
	case len(starts) < 2:
		return Cut{}, ErrAllRecent
	}
	var at int
	if p.Segment > 0 {
		at = p.segmentEnd(s.Tail, starts)
	} else {
		at = p.tailStart(s.Tail, starts, available, available-s.SummaryTokens)
	}
	if at == 0 {
		return Cut{}, ErrAllRecent
	}
	closed := closedBefore(s.Tail, starts, at, p.exceedsWindow(w, s))
	if closed == 0 || p.Segment > 0 && closed < at { // a segment leaves whole or stays
		return Cut{}, ErrBlockedHead
	}
	gone := s.Tail[:closed]
	return Cut{Index: closed, Through: lastSeq(gone), Source: TokensOf(gone), Recent: TokensOf(s.Tail[closed:])}, nil
}

// In a full window open calls hold back no cut.
func (p Policy) exceedsWindow(w Window, s State) bool {
	return s.Fixed+s.SummaryTokens+TokensOf(s.Tail) >= w.Usable()
}

// segmentEnd is the end of the oldest Segment turns if enough answered turns follow, else 0. The first turn has the
// events before it.
func (p Policy) segmentEnd(tail []sessions.Event, starts []int) int {
	if tail[0].Role != sessions.RoleUser {
		starts = starts[1:]
	}
	answered := len(starts)
	if tail[len(tail)-1].Role == sessions.RoleUser {
		answered--
	}
	if answered < p.Segment+max(1, p.TailTurns) {
		return 0
	}
	return starts[p.Segment]
}

// tailStart is the start of the raw tail, and of a turn. available is the budget of conversation and summaries, room
// the rest next to the continued summary.
func (p Policy) tailStart(tail []sessions.Event, starts []int, available, room int) int {
	budget := min(int(p.TailShare*float64(available)), room)
	keep, tokens := len(tail), 0
	for i, start := range slices.Backward(starts) {
		turns, events := len(starts)-1-i, len(tail)-keep
		turn := TokensOf(tail[start:keep])
		if turns > 0 && turns >= p.TailTurns && !p.takesTurn(events, tokens+turn, budget, room) {
			break
		}
		keep, tokens = start, tokens+turn
	}
	return keep
}

// The tokens include the turn, the events do not.
func (p Policy) takesTurn(events, tokens, budget, room int) bool {
	switch {
	case p.TailMessages > 0 && events >= p.TailMessages:
		return false
	case p.TailShare > 0 && tokens <= budget:
		return true
	case p.TailMessages > 0 && p.TailShare > 0:
		return events < leastTail && tokens <= room
	}
	return p.TailMessages > 0
}

// closedBefore moves a cut left to a turn start without open calls; giveUp ignores calls without a result.
func closedBefore(tail []sessions.Event, starts []int, at int, giveUp bool) int {
	all := pairCalls(tail)
	for parted := true; parted; {
		parted = false
		for _, x := range all {
			if x.call < at && at <= x.result && (!giveUp || x.result != pending) {
				at, parted = starts[sort.SearchInts(starts, x.call+1)-1], true
			}
		}
	}
	return at
}
