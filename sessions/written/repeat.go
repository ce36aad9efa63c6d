package written

import (
	"unicode"
	"unicode/utf8"
)

// A repetition is looked for in the newest window of an answer, each time that it has grown by a step, in characters.
const (
	window = 2048
	step   = 256
)

// A unit is repeated without end after this number of times and characters: a short one often, a sentence in a long row.
// Units without letters, such as lines of tables, and code need more.
const (
	shortTimes, shortRun = 150, 300
	longTimes, longRun   = 8, 1500
	leniency             = 4
	shownUnits           = 2
)

// add reports whether the text ended with a repetition.
func (f *Filter) add(r rune) bool {
	f.out, f.tail = utf8.AppendRune(f.out, r), append(f.tail, r)
	if len(f.tail) > 2*window {
		f.tail = append(f.tail[:0], f.tail[len(f.tail)-window:]...)
	}
	f.count++
	return f.count%step == 0 && f.cutRepeats()
}

// cutRepeats leaves two units of a repetition at the end.
func (f *Filter) cutRepeats() bool {
	recent := f.tail[max(0, len(f.tail)-window):]
	unit, run := periodOf(recent)
	if unit == 0 {
		return f.cutCounting(recent)
	}
	whole := recent
	if run == len(recent) {
		whole = []rune(string(f.out))
		for run = unit; run < len(whole) && whole[len(whole)-1-run] == whole[len(whole)-1-run+unit]; run++ {
		}
	}
	factor, times := f.factor(whole[len(whole)-unit:]), run/unit
	if (times < factor*shortTimes || run < factor*shortRun) && (times < longTimes || run < factor*longRun) {
		return false
	}
	f.loop(whole[len(whole)-run+shownUnits*unit:])
	return true
}

func (f *Filter) factor(unit []rune) int {
	if f.line.InCode() || !hasLetter(unit) {
		return leniency
	}
	return 1
}

// loop cuts text off the end, and ends the answer.
func (f *Filter) loop(behind []rune) {
	f.out = f.out[:len(f.out)-len(string(behind))]
	f.note(Repeated)
	f.ended = true
}

// endless reports whether text that is held back repeats without end. Such text is dropped.
func (f *Filter) endless(s string) bool {
	if f.held == nil {
		f.held = New(Config{})
	}
	f.held.Push(s[min(f.looked, len(s)):])
	f.looked = max(f.looked, len(s))
	if f.held.Ended() {
		f.note(Repeated)
		f.ended = true
	}
	return f.ended
}

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
