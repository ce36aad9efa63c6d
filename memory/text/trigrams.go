package text

// Trigrams is the set of all runs of three characters, with the ends of the text counted as characters.
func Trigrams(text string) map[string]bool {
	runes := append(append([]rune{' ', ' '}, []rune(text)...), ' ')
	set := make(map[string]bool, len(runes))
	for i := range len(runes) - 2 {
		set[string(runes[i:i+3])] = true
	}
	return set
}

// Jaccard is the similarity of two sets, from 0 to 1: the share of their union that both have.
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
