package text

// trigrams is the set of what stands in three places side by side, the ends of the text counted as places.
func Trigrams(text string) map[string]bool {
	runes := append(append([]rune{' ', ' '}, []rune(text)...), ' ')
	set := make(map[string]bool, len(runes))
	for i := range len(runes) - 2 {
		set[string(runes[i:i+3])] = true
	}
	return set
}

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
