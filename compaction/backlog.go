package compaction

const (
	// leastPart is the smallest part in tokens: less frees too little for its request.
	leastPart = 4 * minFreed
	// maxHalvings bounds how often failures halve a part.
	maxHalvings = 4
)

// Part is the cut of one attempt: all that [Policy.Plan] releases, or its oldest part if that exceeds half of the
// window. Consecutive failures halve it, so that attempts get cheaper. Recent is that of the whole plan. A source that
// no summary can shorten is ErrTooLittle.
func (p Policy) Part(w Window, s State) (cut Cut, partial bool, err error) {
	cut, err = p.Plan(w, s)
	if err != nil || p.Segment > 0 {
		return cut, false, err
	}
	if source := cut.Source + p.replacedTokens(s); p.Mode != PruneOnly && p.MostSummary(source) < MinSummary+HealAllowance(MinSummary) {
		return Cut{}, false, ErrTooLittle
	}
	parts := p.partCount(w, s, cut.Source)
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

func (p Policy) partCount(w Window, s State, tokens int) int {
	most := max(leastPart, w.Context/2>>min(max(0, s.Session.CompactFailures), maxHalvings))
	return max(1, (tokens+most-1)/most)
}

// Backlog is the size in tokens of the events that may leave now, and the estimated number of attempts.
func (p Policy) Backlog(w Window, s State) (tokens, parts int) {
	cut, err := p.Plan(w, s)
	if err != nil {
		return 0, 0
	}
	if p.Segment == 0 {
		return cut.Source, p.partCount(w, s, cut.Source)
	}
	starts := TurnStarts(s.Tail)
	parts = max(1, (len(starts)-p.TailTurns)/p.Segment)
	return TokensOf(s.Tail[:starts[min(parts*p.Segment, len(starts)-1)]]), parts
}

// closedStarts lists turn starts without open tool calls. In a context that overflows no call counts as open.
func (p Policy) closedStarts(w Window, s State, end int) []int {
	giveUp := p.exceedsWindow(w, s)
	open := make([]int, len(s.Tail)+1) // exchanges that begin before an index minus those that end there
	for _, x := range pairCalls(s.Tail) {
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
