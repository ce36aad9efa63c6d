package rank

// Piece is the part of a text, at most size characters, with most terms of a query and some words before them. A part
// behind the beginning starts with an ellipsis.
func (q Query) Piece(text string, size int) string {
	runes := []rune(text)
	if len(runes) <= size {
		return text
	}
	type place struct{ at, term int }
	var places []place
	for _, t := range termsOf(text) {
		h := termHash(t.text)
		for i := range q.terms {
			if q.terms[i].hash == h {
				places = append(places, place{t.at, i})
			}
		}
	}
	lead := size / 10
	start, best, window := 0, 0.0, make([]int, len(q.terms))
	weight, from := 0.0, 0
	for _, p := range places {
		if window[p.term]++; window[p.term] == 1 {
			weight += q.terms[p.term].weight
		}
		for places[from].at < p.at-(size-2*lead) {
			if window[places[from].term]--; window[places[from].term] == 0 {
				weight -= q.terms[places[from].term].weight
			}
			from++
		}
		if weight > best {
			start, best = places[from].at-lead, weight
		}
	}
	// Folding may have changed the number of characters: the place is near enough.
	start = min(start, len(runes)-size)
	if start <= 0 {
		return string(runes[:size])
	}
	return "…" + string(runes[start:start+size])
}
