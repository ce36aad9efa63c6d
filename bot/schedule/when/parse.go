package when

import (
	"strings"
	"time"

	"ebb/memory/dates"
)

// phrase is the parts of a time.
type phrase struct {
	every *repetition
	day   *dates.Mention
	away  *distance
	part  string // a key of dayParts
	clock *clockTime
	hours uint32 // further hours of a repetition at the same minute, as bits
}

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

// takeWords reads all parts of a time that are next.
func (p *parser) takeWords(words *phrase) {
	for p.takePart(words) {
	}
	if words.every != nil {
		p.takeMoreClocks(words)
		p.take("onceEach")
	}
}

// contradicts reports whether the time of the day is not in the part of the day that is named.
func (w *phrase) contradicts() bool {
	part, named := dayParts[w.part]
	return named && w.clock != nil && part.contradicts(*w.clock)
}

// placeOfNow gives "at the same time" its day, which is today's in another week, month or year. It returns false without a day.
func (w *phrase) placeOfNow(now time.Time) bool {
	switch {
	case w.clock == nil || !w.clock.ofNow:
		return true
	case w.part != "" && !dayParts[w.part].holds(now.Hour()):
		return false
	case w.day == nil || w.day.OneDay():
		return w.day != nil || w.every != nil || w.away != nil
	}
	day, ok := dayOfToday(*w.day, now)
	w.day = &day
	return ok
}

// spec returns the times that a phrase means, within the limits.
func (w *phrase) spec(wall, now time.Time) (Spec, error) {
	switch {
	case w.every != nil:
		return w.repeating(wall, now)
	case w.away != nil:
		return w.distant(wall, now)
	}
	t, err := w.next(wall, now)
	if err != nil {
		return Spec{}, err
	}
	first, _ := instants(t, now.Location())
	return check(newOnce(first), now)
}

// canonicalInstant completes an instant of RFC 3339 without seconds.
func canonicalInstant(s string) string {
	s = strings.Replace(strings.ToUpper(s), " ", "T", 1)
	if zone := len("2006-01-02T15:04"); s[zone] != ':' {
		s = s[:zone] + ":00" + s[zone:]
	}
	return s
}

// check applies the limits of times ahead.
func check(s Spec, now time.Time) (Spec, error) {
	next, ok := s.Next(now)
	switch {
	case !ok && s.kind == once:
		return Spec{}, ErrPast
	case !ok || next.After(now.AddDate(maxYears, 0, 0)):
		return Spec{}, ErrFar
	case s.kind == once && next.Before(now.Add(time.Second)):
		return Spec{}, ErrSoon
	}
	return s, nil
}

// takePart reads a further part of a time. The words between two parts belong to neither.
func (p *parser) takePart(w *phrase) bool {
	if *w == (phrase{}) {
		return p.takeOne(w)
	}
	if p.takeOne(w) {
		return true
	}
	for _, separator := range []string{"comma", "between"} {
		if p.bad < 0 && p.try(func() bool { return p.take(separator) != nil && p.takeOne(w) }) {
			return true
		}
	}
	return p.bad < 0 && !w.hasHour() && w.part == "" && p.try(func() bool { // "每天提醒我晚上9点吃药"
		return p.take("reminding") != nil && p.takeOne(w)
	})
}

func (p *parser) takeOne(w *phrase) bool {
	if w.every == nil && w.day == nil && w.away == nil {
		if p.takeDay(w) {
			return true
		}
	}
	if w.clock == nil {
		if c, ok := p.takeClock(); ok {
			w.clock = &c
			return true
		}
	}
	return w.part == "" && p.bad < 0 && p.takeDayPart(w)
}

// takeDay reads a repetition, a distance or a date. Behind a time of the day it is one in English: "at 9 on Friday". In
// Chinese the day comes first, and words behind the time are the text.
func (p *parser) takeDay(w *phrase) bool {
	from := p.at
	if p.rest() == "" || (w.clock != nil || w.part != "") && p.follows("chinese") && !p.last {
		return false
	}
	if every, part, ok := p.takeRepetition(); ok {
		w.every = &every
		if part != "" {
			w.part = part
		}
		return true
	}
	p.at = from
	if away, ok := p.takeDistance(); ok && (w.clock == nil || away.byCalendar()) {
		w.away = &away
		p.take("sameDay")
		return true
	}
	p.at = from
	if away, ok := p.takeBareSpan(); ok && *w == (phrase{}) {
		w.away = &away
		return true
	}
	p.at = from
	date, ok := p.takeDate()
	if !ok {
		return false
	}
	if expression("notOneTime").MatchString(date.Words) {
		return p.fail(from)
	}
	w.day = &date
	if w.part == "" {
		w.part = partIn(date.Words)
	}
	p.takeWeekdayOf(w)
	return true
}

// takeWeekdayOf reads the weekday beside a date: "12月25日（周五）", "Friday, 25 December". It moves a weekday to the date.
func (p *parser) takeWeekdayOf(w *phrase) {
	p.try(func() bool {
		m := p.take("behindDate")
		return m != nil && w.day.OneDay() && weekdayOf(m[1]) == w.day.From.Weekday()
	})
	if !expression("onlyWeekday").MatchString(w.day.Words) {
		return
	}
	p.try(func() bool {
		p.take("comma")
		date, ok := dates.Ahead(p.rest(), p.now)
		if !ok || !date.OneDay() || date.From.Weekday() != w.day.From.Weekday() || date.Words == w.day.Words {
			return false
		}
		p.at += len(date.Words)
		w.day = &date
		return true
	})
}

// takeDayPart reads a part of the day. A short one, as in 晚8点, needs a time behind it.
func (p *parser) takeDayPart(w *phrase) bool {
	return p.try(func() bool {
		if p.follows("partOfText") { // "周五下午茶"
			return false
		}
		list, m := p.takeAny("partOfDay", "shortPart")
		if m == nil {
			return false
		}
		w.part = strings.TrimSpace(strings.Join(m[1:], ""))
		if list == "shortPart" {
			clock, ok := p.takeClock()
			if !ok {
				w.part = ""
				return false
			}
			w.clock = &clock
		}
		return true
	})
}

// distant is the time of a distance.
func (w *phrase) distant(wall, now time.Time) (Spec, error) {
	switch {
	case w.away.tooFar():
		return Spec{}, ErrFar
	case *w.away == (distance{}): // also half a second
		return Spec{}, ErrSoon
	}
	day := w.away.day(wall)
	if w.clock != nil || w.part != "" {
		if !w.away.byCalendar() {
			return Spec{}, ErrUnknown
		}
		day = w.timeOf(day)
	}
	t := now
	if w.away.days+w.away.workdays+w.away.months > 0 {
		t, _ = instants(day, now.Location())
	}
	return check(newOnce(t.Add(time.Duration(w.away.seconds)*time.Second)), now)
}

// timeOf returns the time of a phrase on a named day.
func (w *phrase) timeOf(day time.Time) time.Time {
	c := w.timeOfDay()
	return c.on(day, c.hour)
}

// timeOfDay returns the time of a phrase on a named day. Its hour is 24 or more behind midnight.
func (w *phrase) timeOfDay() clockTime {
	switch part, named := dayParts[w.part]; {
	case w.clock != nil && named:
		c := *w.clock
		c.hour = c.hourIn(w.part)
		return c
	case named:
		return clockTime{hour: part.alone}
	case w.clock == nil:
		return clockTime{hour: morning.alone}
	case !w.clock.exact && w.clock.hour < 6:
		c := *w.clock
		c.hour += 12
		return c
	}
	return *w.clock
}

// next returns the next time of a phrase without a distance or a repetition, on the wall clock.
func (w *phrase) next(wall, now time.Time) (time.Time, error) {
	ahead := func(t time.Time) bool {
		first, _ := instants(t, now.Location())
		return first.After(now)
	}
	today := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
	if w.day == nil {
		for n := -1; n <= 2; n++ { // yesterday's evening may last until after midnight
			for _, t := range w.times(today.AddDate(0, 0, n), wall) {
				if ahead(t) {
					return t, nil
				}
			}
		}
		return time.Time{}, ErrPast
	}
	for range 2 {
		for day := w.day.From; day.Before(w.day.To); day = day.AddDate(0, 0, 1) {
			times := []time.Time{w.timeOf(day)}
			if !w.day.Recurs && day.Equal(today) {
				times = w.times(day, wall)
			}
			for _, t := range times {
				if ahead(t) {
					return t, nil
				}
			}
		}
		later, ok := dates.Ahead(w.day.Words, today.AddDate(0, 0, 1))
		if !w.day.Recurs || !ok {
			break
		}
		w.day = &later
	}
	return time.Time{}, ErrPast
}

// times lists the times that a phrase may mean on a day, if its day is not named or is today.
func (w *phrase) times(day, wall time.Time) []time.Time {
	isToday := day.Year() == wall.Year() && day.YearDay() == wall.YearDay()
	switch {
	case w.part != "" || w.clock != nil && w.clock.exact:
		return []time.Time{w.timeOf(day)}
	case w.clock == nil && !isToday:
		return []time.Time{w.timeOf(day)}
	case w.clock == nil:
		var times []time.Time
		for _, part := range []dayPart{morning, afternoon, evening} {
			times = append(times, day.Add(time.Duration(part.alone)*time.Hour))
		}
		return times
	case !isToday:
		return []time.Time{w.timeOf(day)}
	}
	c := *w.clock
	var times []time.Time
	if c.hour >= 6 || wall.Hour() < 6 {
		times = append(times, c.on(day, c.hour))
	}
	if c.hour < 12 {
		times = append(times, c.on(day, c.hour+12))
	}
	return times
}
