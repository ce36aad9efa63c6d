package when

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// takeEnd reads the time at the end of a text, such as "me to drink water in 10 minutes". It may be a part that completes the
// beginning: "tomorrow call mom at 5 pm". place is where it begins. ok is false if the text has two times.
func (p *parser) takeEnd(w *phrase) (place int, ok bool) {
	if p.cut {
		return len(p.text), true
	}
	begin, end := p.at, len(strings.TrimRight(p.text, " ,.;:!?。、"))
	for at := begin; at < end; at++ {
		if !mayBegin(p.text, at, begin) {
			continue
		}
		last, found := p.readTo(at, end, phrase{})
		before := p.text[begin:at]
		changed := endsInTime(before, p.text[at:])
		if !found || !last.isApart(p.text[:at]) && !changed {
			continue
		}
		switch {
		case expression("aboutTime").MatchString(before):
			return len(p.text), true
		case *w == (phrase{}):
			*w = last
			return at, !changed && !p.beginsInTime()
		case changed && w.clock != nil && w.every == nil:
			return len(p.text), true
		case changed:
			return at, false
		}
		if joined, completes := p.readTo(at, end, *w); completes {
			*w = joined
			return at, true
		}
		if !w.hasHour() || !w.hasDay() && last.hasDay() {
			return at, false
		}
		return len(p.text), true
	}
	return len(p.text), true
}

// beginsInTime reports whether the text of a time at its end begins in words of a time: "从明天起每天9点".
func (p *parser) beginsInTime() bool {
	if p.follows("limitPart") {
		return true
	}
	from := p.at
	defer func() { p.at = from }()
	run := p.takeRun()
	return run.words && (run.linked || run.ended || p.text[from] >= utf8.RuneSelf)
}

// mayBegin reports whether a time may begin at a place: at the beginning of a word, and not within a number.
func mayBegin(text string, at, begin int) bool {
	if !utf8.RuneStart(text[at]) {
		return false
	}
	if at == begin {
		return true
	}
	r, _ := utf8.DecodeRuneInString(text[at:])
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	latin := func(r rune) bool { return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	return r != ' ' && (!latin(r) || !latin(before))
}

// isApart reports whether a blank or a mark is before a time. A time that has an hour, or that counts from now, needs none.
func (w *phrase) isApart(text string) bool {
	before, _ := utf8.DecodeLastRuneInString(text)
	return !unicode.IsLetter(before) && !unicode.IsDigit(before) || w.clock != nil || w.away != nil
}

// readTo reads further words of a time that end at a place.
func (p *parser) readTo(at, end int, w phrase) (phrase, bool) {
	from, bad := p.at, p.bad
	defer func() { p.at, p.bad, p.last = from, bad, false }()
	p.at, p.bad, p.last = at, -1, true
	before := w
	p.takeWords(&w)
	return w, p.bad < 0 && p.at >= end && w != before
}

// spoken returns the text of a phrase whose time is at its end.
func spoken(words string) string {
	words = strings.TrimSpace(words)
	lower := strings.ToLower(words)
	for _, lead := range []string{"to ", "that "} {
		if strings.HasPrefix(lower, lead) {
			words = words[len(lead):]
			break
		}
	}
	return strings.TrimRight(strings.TrimSpace(words), " ,，、:：;；@＠")
}
