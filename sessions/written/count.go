package written

import (
	"strings"
	"unicode"
)

// A unit whose numbers grow evenly is a loop after this number of times and characters: people ask for a list of all weeks or codes.
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

// run is the length of the repetition of a unit at the end. Each number changes by the same amount from one to the next.
func (c counted) run(unit int) int {
	n := len(c.runes)
	i := n - 1 - unit
	for ; i >= 0 && c.runes[i] == c.runes[i+unit]; i-- {
		if c.value[i] >= 0 && i+2*unit < n && c.value[i+unit]-c.value[i] != c.value[i+2*unit]-c.value[i+unit] {
			break
		}
	}
	return n - 1 - i
}

// cutCounting leaves two units of a repetition whose numbers grow, in an answer. A summary lists the identifiers of its events, which may
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
	if unit == 0 || c.run(unit) < longTimes*unit {
		return false
	}
	factor := f.factor(c.runes[len(c.runes)-unit:])
	// The beginning is looked for only once: before that, only as far as the bounds.
	for _, most := range []int{2 * numberedRun * factor, f.count} {
		recent = lastRunes(f.out, most)
		c = foldNumbers(recent)
		from := c.at[len(c.runes)-c.run(unit)]
		if times, run := c.run(unit)/unit, len(recent)-from; times < factor*numberedTimes || run < factor*numberedRun {
			f.again = f.count + factor*numberedRun - run // it grows by no more than the text
			return false
		}
	}
	f.loop(recent[c.at[len(c.runes)-c.run(unit)+shownUnits*unit]:])
	return true
}

func lastRunes(b []byte, n int) []rune {
	const maxBytes = 4
	rs := []rune(string(b[max(0, len(b)-maxBytes*n):]))
	return rs[max(0, len(rs)-n):]
}
