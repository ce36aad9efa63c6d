package written

import "unicode/utf8"

// A repetition is looked for in the newest window of an answer, each time that it has grown by a step, in characters.
const (
	window = 2048
	step   = 256
)

// A unit whose numbers grow is a loop after this number of times and characters, since people ask for hundreds of codes. The limit of tokens
// is a sign of a loop, so fewer times are one there.
const (
	numberedTimes = 700
	limitTimes    = 60
	numberedRun   = 4000
)

// maxDays are the days of the longest calendar that people ask for.
const maxDays = 366 + 5

// output is the text of an answer. It ends where the text becomes a loop.
type output struct {
	text  []byte
	lines lines

	counting bool   // loops whose numbers change are looked for
	tail     []rune // newest runes of text
	count    int    // runes of text
	again    int    // runes of text at which a loop that counts may be found
	limit    bool   // the model ran to its limit of tokens
}

// add adds text, and reports whether it was cut since it repeats without end.
func (o *output) add(s string) (looped bool) {
	for _, r := range s {
		o.lines.add(r)
		o.text, o.tail = utf8.AppendRune(o.text, r), append(o.tail, r)
		if len(o.tail) > 2*window {
			o.tail = append(o.tail[:0], o.tail[len(o.tail)-window:]...)
		}
		if o.count++; o.count%step == 0 && o.cutRepeats() {
			return true
		}
	}
	return false
}

// pass follows the lines of text that is dropped.
func (o *output) pass(s string) {
	for _, r := range s {
		o.lines.add(r)
	}
}

// prepend puts text before the answer.
func (o *output) prepend(s string) {
	o.text = append([]byte(s), o.text...)
	o.count += utf8.RuneCountInString(s)
}

// finish reports whether the end of the text was cut. limit says that the model ran to its limit of tokens.
func (o *output) finish(limit bool) (looped bool) {
	o.limit, o.again = limit, 0
	return o.cutRepeats()
}

// cutRepeats leaves two units of a repetition at the end.
func (o *output) cutRepeats() bool {
	recent := o.tail[max(0, len(o.tail)-window):]
	unit, run := periodOf(recent)
	if unit == 0 {
		return o.cutCounting(recent)
	}
	whole := recent
	if run == len(recent) {
		whole = []rune(string(o.text))
		for run = unit; run < len(whole) && whole[len(whole)-1-run] == whole[len(whole)-1-run+unit]; run++ {
		}
	}
	factor, times := o.factor(whole[len(whole)-unit:]), run/unit
	if (times < factor*shortTimes || run < factor*shortRun) && (times < longTimes || run < factor*longRun) {
		return false
	}
	o.cut(whole[len(whole)-run+shownUnits*unit:])
	return true
}

func (o *output) factor(unit []rune) int {
	if o.lines.code.InCode() || !hasLetter(unit) {
		return leniency
	}
	return 1
}

// cut removes text from the end.
func (o *output) cut(behind []rune) {
	o.text = o.text[:len(o.text)-len(string(behind))]
}

// cutCounting leaves two units of a repetition whose numbers change. Lists, calendars and logs are answers, so a repetition
// goes on far past their lengths, or to the limit of tokens. A summary lists the identifiers of its events, which may grow evenly.
func (o *output) cutCounting(recent []rune) bool {
	if !o.counting || o.count < numberedRun || o.count < o.again {
		return false
	}
	c := foldNumbers(recent)
	if c.count < longTimes {
		return false
	}
	unit, _ := periodOf(c.runes)
	if unit == 0 {
		return false
	}
	o.again = o.count + max(step, o.count/3) // all looks take time in proportion to the text
	factor := o.factor(c.runes[len(c.runes)-unit:])
	recent = []rune(string(o.text))
	c = foldNumbers(recent)
	from := func(run int) []rune { return recent[c.at[len(c.runes)-run]:] }
	even, dated := c.run(unit, evenly), c.run(unit, asInDates)
	run := 0
	switch isLong := func(run, times int) bool {
		return run/unit >= factor*times && len(from(run)) >= factor*numberedRun
	}; {
	case o.limit && isLong(dated, limitTimes), isLong(dated, 1) && daysIn(string(from(dated))) > factor*maxDays:
		run = dated
	case isLong(even, numberedTimes):
		run = even
	default:
		return false
	}
	o.cut(from(run - shownUnits*unit))
	return true
}

// held looks for loops in text that is held back. Such text only grows.
type held struct {
	out    output
	looked int // bytes of the text that out has
	looped bool
}

// loops reports whether the text repeats without end.
func (h *held) loops(s string) bool {
	if h.looped || h.looked >= len(s) {
		return h.looped
	}
	s, _ = wholeRunes(s[h.looked:])
	h.looked += len(s)
	h.looped = h.out.add(s)
	return h.looped
}

// wholeRunes cuts off an incomplete character at the end.
func wholeRunes(s string) (whole, rest string) {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if last := s[len(s)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRuneInString(last) {
				return s[:len(s)-n], last
			}
			break
		}
	}
	return s, ""
}
