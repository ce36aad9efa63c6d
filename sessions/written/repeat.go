package written

import "unicode"

// A unit is repeated without end after this number of times and characters: a short one often, a sentence in a long row.
// Units without letters, such as lines of tables, and code need more.
const (
	shortTimes, shortRun = 150, 300
	longTimes, longRun   = 8, 1500
	leniency             = 4
	shownUnits           = 2
)

func hasLetter(rs []rune) bool {
	for _, r := range rs {
		if unicode.IsLetter(r) {
			return true
		}
	}
	return false
}

// periodOf returns the shortest unit that the end of a text repeats at least longTimes over shortRun characters, and the
// length of the repetition; 0 for none. It takes time in proportion to the text.
func periodOf(rs []rune) (unit, run int) {
	n := len(rs)
	at := func(i int) rune { return rs[n-1-i] } // from the end
	z := make([]int, n)
	for i, l, r := 1, 0, 0; i < n; i++ {
		if i < r {
			z[i] = min(r-i, z[i-l])
		}
		for i+z[i] < n && at(z[i]) == at(i+z[i]) {
			z[i]++
		}
		if i+z[i] > r {
			l, r = i, i+z[i]
		}
		if run := z[i] + i; run >= shortRun && run/i >= longTimes {
			return i, run
		}
	}
	return 0, 0
}
