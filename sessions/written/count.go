package written

import (
	"strings"
	"unicode"
)

// A unit whose numbers grow is a loop after this number of times and characters.
const (
	numberedTimes = 60
	numberedRun   = 4000
)

// counted is a text with one rune for each number, so that units which differ by their numbers are equal.
type counted struct {
	runes []rune
	value []int // value of a number, else -1
	at    []int // index in the text, for each rune and the end
	count int   // amount of numbers
}

const anyNumber = unicode.MaxRune + 1

// foldNumbers leaves out a number at the end: more digits may come.
func foldNumbers(rs []rune) counted {
	var c counted
	for i := 0; i < len(rs); {
		n, value := numberAt(rs[i:])
		if n > 0 && i+n == len(rs) {
			c.at = append(c.at, i)
			return c
		}
		r := rune(anyNumber)
		if c.count++; n == 0 {
			r, n, value = rs[i], 1, -1
			c.count--
		}
		c.runes, c.value, c.at = append(c.runes, r), append(c.value, value), append(c.at, i)
		i += n
	}
	c.at = append(c.at, len(rs))
	return c
}

const maxValue = 1 << 40

// numberAt reads digits of any script, or Chinese numerals.
func numberAt(rs []rune) (n, value int) {
	for n < len(rs) && unicode.IsDigit(rs[n]) {
		value = min(value*10+digit(rs[n]), maxValue)
		n++
	}
	if n > 0 {
		return n, value
	}
	total, part := 0, 0
	for ; n < len(rs); n++ {
		switch i := strings.IndexRune("零一二三四五六七八九", rs[n]); {
		case i >= 0:
			part = min(part*10+i/len("零"), maxValue)
		case rs[n] == '〇':
			part = min(part*10, maxValue)
		case rs[n] == '十':
			total, part = total+max(part, 1)*10, 0
		case rs[n] == '百':
			total, part = total+max(part, 1)*100, 0
		case rs[n] == '千':
			total, part = total+max(part, 1)*1000, 0
		default:
			return n, total + part
		}
	}
	return n, total + part
}

func digit(r rune) int {
	zero := r
	for unicode.IsDigit(zero-1) && r-zero < 9 {
		zero--
	}
	return int(r - zero)
}

// run is the length of the repetition of a unit at the end, as far as its numbers change in one way.
func (c counted) run(unit int, change func(a, b, c int) bool) int {
	n := len(c.runes)
	i := n - 1 - unit
	for ; i >= 0 && c.runes[i] == c.runes[i+unit]; i-- {
		if c.value[i] >= 0 && i+2*unit < n && !change(c.value[i], c.value[i+unit], c.value[i+2*unit]) {
			break
		}
	}
	return n - 1 - i
}

// Ways in which a number changes from one unit to the next.
func evenly(a, b, c int) bool { return b-a == c-b }

func anyhow(_, _, _ int) bool { return true }

// asInDates also allows fields of dates and times: they begin again, and those above them change only then.
func asInDates(a, b, c int) bool {
	return evenly(a, b, c) || isField(a) && isField(b) && isField(c)
}

func isField(n int) bool { return n < 60 || n >= 1900 && n < 2100 }

// loops are the kinds of repetitions whose units differ by their numbers. Each has the least length of a unit, with a number as one
// character, the least number of repetitions, and the least length of all. People ask for a list of all days of a year, weeks or codes.
var loops = []struct {
	change           func(a, b, c int) bool
	unit, times, run int
}{
	{evenly, 1, numberedTimes, numberedRun},
	{asInDates, 20, numberedTimes, numberedRun},
	{asInDates, 1, daysOfYear + 5, numberedRun},
	{anyhow, 40, 2 * numberedTimes, 2 * numberedRun},
}

const daysOfYear = 366

// cutCounting leaves two units of a repetition whose numbers change, in an answer. A summary lists the identifiers of its events, which may
// grow evenly.
func (f *Filter) cutCounting(recent []rune) bool {
	if !f.cfg.Turn || f.count < max(numberedRun, f.again) {
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
	factor := f.factor(c.runes[len(c.runes)-unit:])
	// The beginning is looked for only once: before that, only as far as the bounds.
	for _, most := range []int{4 * numberedRun * factor, f.count} {
		recent = lastRunes(f.out, most)
		c = foldNumbers(recent)
		from, missing := c.loop(unit, factor, len(recent))
		if from < 0 {
			f.again = f.count + missing // it grows by no more than the text
			return false
		}
		recent = recent[from:]
	}
	f.loop(recent)
	return true
}

// loop returns where the rest of a repetition begins that is without end, behind the units to show; else -1, and the number of characters
// that it lacks at least.
func (c counted) loop(unit, factor, whole int) (from, missing int) {
	missing = numberedRun
	for _, l := range loops {
		if unit < l.unit {
			continue
		}
		run := c.run(unit, l.change)
		length := whole - c.at[len(c.runes)-run]
		if run/unit >= factor*l.times && length >= factor*l.run {
			return c.at[len(c.runes)-run+shownUnits*unit], 0
		}
		missing = min(missing, max(step, factor*l.run-length))
	}
	return -1, missing
}

func lastRunes(b []byte, n int) []rune {
	const maxBytes = 4
	rs := []rune(string(b[max(0, len(b)-maxBytes*n):]))
	return rs[max(0, len(rs)-n):]
}
