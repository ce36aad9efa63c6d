package when

import (
	"strings"
	"time"
)

// Parse reads the time at the beginning or at the end of a text, in the zone of now. It returns the other words, without words
// such as "提醒我", "remind me" and "to". The doc of the package describes the defaults for missing words. An error is an [*Error].
func Parse(text string, now time.Time) (spec Spec, rest string, err error) {
	p := newParser(text, now)
	p.take("opening")
	from := p.at
	spec, end, reason := p.spec(now)
	if reason != nil {
		if p.bad >= 0 {
			from = p.bad
		}
		return Spec{}, "", &Error{reason, p.offsets[from], p.bad >= 0}
	}
	return spec, p.words(text, from, end), nil
}

// words returns the text beside a time: behind it up to a place, or before the time at the end.
func (p *parser) words(original string, from, end int) string {
	if p.at == from { // nothing was read here
		return spoken(original[p.offsets[from]:p.offsets[end]])
	}
	for range 2 {
		p.take("closing")
	}
	if p.at >= end {
		return ""
	}
	if end == len(p.text) {
		return strings.TrimSpace(original[p.offsets[p.at]:])
	}
	return spoken(original[p.offsets[p.at]:p.offsets[end]])
}

// spec reads a time, and checks it. end is the place where a part of the time begins at the end of the text, or the text's end.
func (p *parser) spec(now time.Time) (spec Spec, end int, err error) {
	end = len(p.text)
	if m := p.take("instant"); m != nil {
		t, err := time.Parse("2006-01-02T15:04:05Z07:00", canonicalInstant(m[0]))
		if err != nil {
			return Spec{}, end, ErrUnknown
		}
		spec, err = check(newOnce(t.In(now.Location())), now)
		return spec, end, err
	}
	if m := p.take("cron"); m != nil {
		spec, err := newCron(strings.TrimSpace(m[1]), zoneName(now))
		if err != nil || p.inWord() {
			return Spec{}, end, ErrUnknown
		}
		spec, err = check(spec, now)
		return spec, end, err
	}
	var words phrase
	from := p.at
	p.takeWords(&words)
	p.take("roughly")
	if p.bad < 0 && words != (phrase{}) && p.isCutShort(words) {
		p.fail(p.at)
	}
	if p.bad < 0 {
		ok := false
		if end, ok = p.takeEnd(&words); !ok {
			p.fail(end)
			end = len(p.text)
		}
	}
	if p.bad >= 0 || words == (phrase{}) || !words.placeOfNow(p.now) || words.contradicts() {
		return Spec{}, end, ErrUnknown
	}
	if from == p.at && end == from {
		p.at = len(p.text)
	}
	spec, err = words.spec(p.now, now)
	return spec, end, err
}

// canonicalInstant completes an instant of RFC 3339 without seconds.
func canonicalInstant(s string) string {
	s = strings.Replace(strings.ToUpper(s), " ", "T", 1)
	if zone := len("2006-01-02T15:04"); s[zone] != ':' {
		s = s[:zone] + ":00" + s[zone:]
	}
	return s
}
