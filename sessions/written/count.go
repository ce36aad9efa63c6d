package written

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
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

// asInDates also allows fields of dates and times: they begin again, and take one more from the field below.
func asInDates(a, b, c int) bool {
	if evenly(a, b, c) {
		return true
	}
	if !isField(a) || !isField(b) || !isField(c) {
		return false
	}
	return slices.ContainsFunc([]int{12, 24, 28, 29, 30, 31, 60}, func(m int) bool {
		more := (c - b - (b - a)) % m
		return more == 0 || more == 1 || more == -1 || more == m-1 || more == 1-m
	})
}

func isField(n int) bool { return n < 60 || n >= 1900 && n < 2100 }

var date = regexp.MustCompile(`\d{4}[-/.年] ?\d{1,2}[-/.月] ?\d{1,2}|\d{1,2} ?月 ?\d{1,2} ?日`)

// daysIn counts the lines of a text whose first date differs from that of the line before.
func daysIn(s string) (n int) {
	last := ""
	for line := range strings.Lines(s) {
		if d := date.FindString(line); d != last {
			n, last = n+1, d
		}
	}
	return n
}
