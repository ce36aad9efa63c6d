package when

import (
	"strings"

	"ebb/memory/dates"
)

// takeWords reads all parts of a time that are next.
func (p *parser) takeWords(words *phrase) {
	for p.takePart(words) {
	}
	if words.every != nil {
		p.takeMoreClocks(words)
		p.take("onceEach")
	}
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

// takeMoreClocks reads further times of the day: "每天8点和20点", "every day at 9:00 and 18:00".
func (p *parser) takeMoreClocks(w *phrase) {
	for w.clock != nil && p.try(func() bool {
		joined := p.take("moreClock") != nil
		next := phrase{}
		if !p.takeDayPart(&next) && !joined {
			return false
		}
		if next.clock == nil {
			clock, ok := p.takeClock()
			if !ok {
				number := p.take("bareNumber")
				if number == nil || p.rest() != "" && !p.follows("moreClock") {
					return false
				}
				hour, known := count(strings.TrimSpace(number[0]))
				if clock = (clockTime{hour: int(hour), exact: hour > 12}); !known || !clock.valid() {
					return false
				}
			}
			next.clock = &clock
		}
		c := next.timeOfDay()
		if c.hour > 23 || c.minute != w.clock.minute || c.second > 0 {
			return false
		}
		w.hours |= 1 << c.hour
		return true
	}) {
	}
}
