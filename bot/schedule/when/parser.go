package when

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"ebb/memory/dates"
	"ebb/memory/text"
	"ebb/sessions/rules"
)

//go:embed rules.tsv
var ruleLines string

var ruleFile = rules.Read(ruleLines)

// expressions are the compiled lists of rules.tsv by name, and single rules by their text.
var expressions sync.Map

// expression matches any rule of a list.
func expression(list string) *regexp.Regexp { return cached(list, ruleFile.Regexp(list)) }

// compiled matches a single rule.
func compiled(expr string) *regexp.Regexp {
	return cached(expr, func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func cached(name string, compile func() *regexp.Regexp) *regexp.Regexp {
	known, _ := expressions.Load(name)
	if re, ok := known.(*regexp.Regexp); ok {
		return re
	}
	re := compile()
	expressions.Store(name, re)
	return re
}

// maxPhrase is the number of characters in which a phrase ends. The rest of a text is not read.
const maxPhrase = 200

// parser reads the folded beginning of a text from left to right.
type parser struct {
	text    string // folded
	offsets []int  // places of the folded bytes in the original, and its end
	at      int
	bad     int       // the place of a part without sense, or -1
	cut     bool      // the text goes on
	last    bool      // the time is at the end of the text
	now     time.Time // on the wall clock
}

// newParser folds the phrase character by character and keeps the place of each byte in the original, since answers quote what was
// not understood. It stops at maxPhrase: a pasted text is no time.
func newParser(original string, now time.Time) *parser {
	p := &parser{bad: -1, now: wallClock(now)}
	var b strings.Builder
	n := 0
	for at, r := range original {
		if n++; n > maxPhrase {
			p.offsets = append(p.offsets, at)
			p.cut = true
			break
		}
		folded := text.Canonical(string(r))
		if unicode.IsSpace(r) {
			folded = " "
		}
		for range len(folded) {
			p.offsets = append(p.offsets, at)
		}
		b.WriteString(folded)
	}
	if n <= maxPhrase {
		p.offsets = append(p.offsets, len(original))
	}
	p.text = b.String()
	p.take("blank")
	return p
}

func (p *parser) rest() string { return p.text[p.at:] }

// take moves behind an expression of a list if it matches here, and returns its groups.
func (p *parser) take(list string) []string {
	m := expression(list).FindStringSubmatch(p.rest())
	if m != nil {
		p.at += len(m[0])
	}
	return m
}

// takeAny returns the groups of the first list that matches, and its name.
func (p *parser) takeAny(lists ...string) (string, []string) {
	for _, list := range lists {
		if m := p.take(list); m != nil {
			return list, m
		}
	}
	return "", nil
}

// follows reports whether a list matches here.
func (p *parser) follows(list string) bool { return expression(list).MatchString(p.rest()) }

// inWord reports whether a Latin word or a number goes on here.
func (p *parser) inWord() bool {
	r, _ := utf8.DecodeRuneInString(p.rest())
	before, _ := utf8.DecodeLastRuneInString(p.text[:p.at])
	latin := func(r rune) bool { return unicode.Is(unicode.Latin, r) }
	return latin(r) && latin(before) || unicode.IsDigit(r) && unicode.IsDigit(before)
}

// try runs a part of the grammar and returns to its beginning if the part is not there.
func (p *parser) try(part func() bool) bool {
	from := p.at
	if part() {
		return true
	}
	p.at = from
	return false
}

// fail notes the part from a place to here as one without sense.
func (p *parser) fail(from int) bool {
	if p.bad < 0 {
		p.bad = from
	}
	return false
}

// maxCount bounds the numbers of a phrase, so that sums do not overflow.
const maxCount = 1_000_000_000

// count reads a number of a phrase. Larger ones than maxCount are maxCount.
func count(s string) (int64, bool) {
	n, ok := dates.Number(strings.Join(strings.Fields(s), " "))
	if !ok && strings.Trim(s, "0123456789") == "" && s != "" {
		return maxCount, true // strconv has refused it for its size
	}
	return int64(min(n, maxCount)), ok
}
