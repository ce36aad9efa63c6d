package compaction

import "ebb/sessions"

// What one part of a backlog holds, in tokens.
const (
	// leastPart is the smallest part: less frees too little to be worth a request.
	leastPart = 4 * minFreed
	// maxHalvings is how often the parts are halved after failures.
	maxHalvings = 4
)

// Part is the cut that one attempt takes: all that [Policy.Plan] lets leave, or the oldest part of it where that is more
// than half of the window. Each part is a commit of its own. After each failure in a row the parts are half as long, so
// that attempts which fail cost less and less. Recent of a part is that of the whole plan. What no summary can tell with a
// gain is not begun: ErrTooLittle.
func (p Policy) Part(w Window, s State) (cut Cut, partial bool, err error) {
	cut, err = p.Plan(w, s)
	if err != nil || p.Segment > 0 {
		return cut, false, err
	}
	if source := cut.Source + p.replaced(s); p.Mode != PruneOnly && p.MostSummary(source) < MinSummary+HealAllowance(MinSummary) {
		return Cut{}, false, ErrTooLittle
	}
	parts := p.parts(w, s, cut.Source)
	if parts == 1 {
		return cut, false, nil
	}
	at, source := 0, 0
	for _, i := range p.closedStarts(w, s, cut.Index) {
		tokens := TokensOf(s.Tail[at:i])
		if at > 0 && (source+tokens)*parts > cut.Source {
			break
		}
		at, source = i, source+tokens
	}
	if at == 0 || at == cut.Index {
		return cut, false, nil
	}
	return Cut{Index: at, Through: lastSeq(s.Tail[:at]), Source: source, Recent: cut.Recent}, true, nil
}

// replaced is what a new summary takes the place of besides events, in tokens.
func (p Policy) replaced(s State) int {
	if p.Rolling {
		return s.Standing
	}
	return 0
}

// parts is the number of parts that so many tokens are told in.
func (p Policy) parts(w Window, s State, tokens int) int {
	most := max(leastPart, w.Context/2>>min(max(0, s.Session.CompactFailures), maxHalvings))
	return max(1, (tokens+most-1)/most)
}

// Backlog is what may leave the view now: its tokens, and about how many attempts it takes. Both are 0 where nothing can
// leave.
func (p Policy) Backlog(w Window, s State) (tokens, parts int) {
	cut, err := p.Plan(w, s)
	if err != nil {
		return 0, 0
	}
	if p.Segment == 0 {
		return cut.Source, p.parts(w, s, cut.Source)
	}
	starts := TurnStarts(s.Tail)
	parts = max(1, (len(starts)-p.TailTurns)/p.Segment)
	return TokensOf(s.Tail[:starts[min(parts*p.Segment, len(starts)-1)]]), parts
}

// closedStarts lists the beginnings of turns, up to an index, before which every tool call has its result. Calls without
// any are overlooked where the context overflows, as in [Policy.Plan].
func (p Policy) closedStarts(w Window, s State, end int) []int {
	giveUp := p.overflows(w, s)
	open := make([]int, len(s.Tail)+1) // exchanges that begin, less those that end, before an index
	for _, x := range exchanges(s.Tail) {
		switch {
		case x.result != pending:
			open[x.call+1]++
			open[x.result+1]--
		case !giveUp:
			open[x.call+1]++
		}
	}
	for i := 1; i < len(open); i++ {
		open[i] += open[i-1]
	}
	var closed []int
	for _, i := range TurnStarts(s.Tail) {
		if 0 < i && i <= end && open[i] == 0 {
			closed = append(closed, i)
		}
	}
	return closed
}

// lastSeq is the highest number among events.
func lastSeq(events []sessions.Event) (seq int64) {
	for _, e := range events {
		seq = max(seq, e.Seq)
	}
	return seq
}
