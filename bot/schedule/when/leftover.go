package when

import (
	"strings"
	"unicode/utf8"
)

// timeRun is a run of words of a time, with the words that join them.
type timeRun struct {
	words  bool // a word of a time is in it
	clock  bool // one of them is a time of the day
	linked bool // joined to the time before it: "and", "until", 到
	ended  bool // no text is joined to it
}

// isCutShort reports whether the words behind a time belong to it. The time would be another one without them.
func (p *parser) isCutShort(w phrase) bool {
	switch {
	case p.follows("limitAnywhere"):
	case p.follows("textMark"):
		return w.every != nil && p.follows("limitDays")
	case p.follows("limit"):
	case w.clock == nil && p.follows("limitHour"):
	case w.day != nil && !w.day.OneDay() && p.follows("limitPart"):
	case w.every != nil && p.follows("limitDays"):
	case w.every != nil && w.clock == nil && p.follows("limitUnit"):
	case strings.HasSuffix(p.text[:p.at], "初") && p.follows("lunarDay"):
	default:
		return p.timeFollowsTime()
	}
	return true
}

// timeFollowsTime reports whether a run of words of a time is next that is no text. Behind a blank or a comma, such words with a
// text joined to them are text: "明天 今天的日报", "monday at 9 friday report".
func (p *parser) timeFollowsTime() bool {
	from := p.at
	defer func() { p.at = from }()
	gap := p.rest()[:len(p.rest())-len(strings.TrimLeft(p.rest(), " ,;("))]
	p.at += len(gap)
	run := p.takeRun()
	switch {
	case !run.words:
		return false
	case gap == "" || run.linked || run.ended:
		return true
	}
	return run.clock && strings.TrimSpace(gap) != ""
}

// takeRun reads words of a time, and those that join them. Numbers without a unit are a time where nothing follows, behind
// "and", and in pairs: "at 9 and 18", "9 to 10". Before a noun a number counts: "3 people".
func (p *parser) takeRun() (run timeRun) {
	for numbers := 0; ; {
		switch {
		case p.follows("textWord"):
			return run
		case p.takeWord("clockWord"):
			run.words, run.clock = true, true
		case p.take("linkWord") != nil:
			run.linked = true
			continue
		case p.takeWord("dayWord"):
			run.words = true
		case p.takeWord("bareNumber"):
			if numbers++; numbers > 1 || run.linked || p.follows("edge") {
				run.words, run.clock = true, true
			}
		case p.takeWord("weakLink"):
			continue
		default:
			return run
		}
		latin := p.text[p.at-1] < utf8.RuneSelf
		run.ended = p.follows("edge") || p.follows("blankEdge") && (!latin || run.clock)
	}
}

// takeWord reads a word of a list that ends where a word ends.
func (p *parser) takeWord(list string) bool {
	return p.try(func() bool {
		m := p.take(list)
		return m != nil && m[0] != "" && !p.inWord()
	})
}

// endsInTime reports whether a text before a time ends in a word that changes the time: "by", "until", 每. A number there is an
// hour, unless it is too long for one, or the time has its own preposition: "read chapter 5 at 9".
func endsInTime(before, time string) bool {
	before = strings.TrimRight(before, " ")
	digits := len(before) - len(strings.TrimRight(before, "0123456789"))
	return 0 < digits && digits < 3 && !expression("preposition").MatchString(time) || expression("beforeTime").MatchString(before)
}
