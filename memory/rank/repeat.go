package rank

const (
	sameShare = 0.6 // share of a memory's terms that an event must have
	sameExtra = 12  // terms of an event beyond twice those of the memory
)

// Repeats reports whether an event says little more than a memory drawn from it.
func Repeats(event, memory Doc) bool {
	has := make(map[uint32]bool, len(event.Keys))
	for _, k := range event.Keys {
		has[lowHash(k)] = true
	}
	shared, all := 0, 0
	for _, k := range memory.Keys {
		if h := lowHash(k); h&^flagMask != flagBase {
			all++
			if has[h] {
				shared++
			}
		}
	}
	return all > 0 && float64(shared) >= sameShare*float64(all) && len(event.Keys) <= 2*len(memory.Keys)+sameExtra
}
