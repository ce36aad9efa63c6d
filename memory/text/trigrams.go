package text

// Trigrams is the set of runs of three characters. A shorter text is one run.
func Trigrams(text string) map[string]bool {
	runes := []rune(text)
	set := make(map[string]bool, len(runes))
	for i := range max(1, len(runes)-2) {
		set[string(runes[i:min(i+3, len(runes))])] = true
	}
	return set
}

// Share is the part of a set that is in another one, 0 to 1.
func Share(of, in map[string]bool) float64 {
	if len(of) == 0 {
		return 0
	}
	both := 0
	for t := range of {
		if in[t] {
			both++
		}
	}
	return float64(both) / float64(len(of))
}

// Jaccard is the share of the union of two sets that both have, 0 to 1.
func Jaccard(a, b map[string]bool) float64 {
	both := 0
	for t := range a {
		if b[t] {
			both++
		}
	}
	if len(a)+len(b) == both {
		return 1
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// Within reports whether all of a are in b.
func Within(a, b map[string]bool) bool {
	for t := range a {
		if !b[t] {
			return false
		}
	}
	return true
}
