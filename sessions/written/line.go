package written

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"ebb/sessions/reasoning"
)

// lines follows the lines of an answer.
type lines struct {
	code reasoning.Line
	cur  []byte // current line
	prev string // last line with words
}

func (l *lines) add(r rune) {
	if r < utf8.RuneSelf {
		l.code.Add(byte(r))
	} else {
		l.code.Add(utf8.RuneSelf) // any byte of a letter
	}
	if r != '\n' {
		l.cur = utf8.AppendRune(l.cur, r)
		return
	}
	if strings.TrimSpace(string(l.cur)) != "" {
		l.prev = string(l.cur)
	}
	l.cur = l.cur[:0]
}

var (
	// leads introduces a mark: a colon, or the sign of an item.
	leads = regexp.MustCompile(`(?:[:：=][ \t]*|(?:用|是|写|写成|例如|比如|像|\b(?:with|uses?|like|is|writes?))[ \t]+|^[ \t>]*(?:[-*+•]|\d{1,3}[.)、])[ \t]*)$`)
	// introduces introduces the lines below: a colon, a heading or a bold line.
	introduces = regexp.MustCompile(`(?:[:：][*_ \t]*|^ {0,3}#{1,6} .*|^ *(\*\*|__).*(\*\*|__) *)$`)
	maxIntro   = 200 // bytes
	listed     = regexp.MustCompile(`^(?:[-*+•|>#]|\d{1,3}[.)、])`)
)

// introduced reports whether the words so far introduce those behind them.
func (l *lines) introduced() bool {
	if blank := len(bytes.TrimSpace(l.cur)) == 0; !blank || l.prev == "" {
		return leads.Match(l.cur)
	}
	return l.belowIntro()
}

// belowIntro reports whether the last line with words introduces the current one.
func (l *lines) belowIntro() bool {
	before := strings.TrimSpace(l.prev)
	return introduces.MatchString(before[max(0, len(before)-maxIntro):])
}

// belowItem reports whether the current line may be a part of the last one with words.
func (l *lines) belowItem() bool {
	return strings.TrimLeft(l.prev, " \t\u3000") != l.prev || listed.MatchString(l.prev)
}
