package when

import (
	"strings"
	"time"
	"unicode/utf8"

	"ebb/memory/dates"
)

// takeDate reads a date. Package dates reads most; these are the ones with another name for their day or their week.
func (p *parser) takeDate() (dates.Mention, bool) {
	if date, ok := p.takeDayOfMonth(); ok {
		return date, true
	}
	for _, list := range []string{"weekdayOfWeek", "weekOnWeekday"} {
		if m := p.take(list); m != nil {
			which, weekday := m[2], m[1]
			if list == "weekOnWeekday" {
				which, weekday = m[1], m[2]
			}
			return dates.Ahead(which+" "+weekday, p.now)
		}
	}
	if m := p.take("nextWorkday"); m != nil {
		day := p.now.Truncate(24*time.Hour).AddDate(0, 0, 1)
		for workdays>>day.Weekday()&1 == 0 {
			day = day.AddDate(0, 0, 1)
		}
		return dates.Mention{Span: dates.Span{From: day, To: day.AddDate(0, 0, 1)}, Words: m[0]}, true
	}
	date, length, ok := p.ahead()
	if !ok {
		return date, false
	}
	p.at += length
	if date.OneDay() {
		return date, true
	}
	if m := p.take("onNth"); m != nil {
		return nthOf(date, m[1], m[2], p.now)
	}
	if m := p.take("onNthLast"); m != nil {
		return nthOf(date, "last", m[1], p.now)
	}
	if p.take("sameDay") != nil {
		return dayOfToday(date, p.now)
	}
	p.try(func() bool { // "下个月 15号", "next month on the 5th"
		floor := p.follows("textWord") // 3号楼
		m := p.take("onDay")
		if m == nil {
			return false
		}
		n, ok := count(strings.Join(m[1:], ""))
		day, found := dayOf(date, p.now, func(first time.Time) time.Time { return first.AddDate(0, 0, int(n)-1) })
		if ok = ok && found && n > 0 && !floor; ok {
			date = day
		}
		return ok
	})
	return date, true
}

// dayOfToday returns the day of today in another week, month or year.
func dayOfToday(d dates.Mention, now time.Time) (dates.Mention, bool) {
	const week = 7 * 24 * time.Hour
	var day time.Time
	switch length := d.To.Sub(d.From); {
	case length <= week:
		day = d.From.AddDate(0, 0, (int(now.Weekday())+6)%7)
	case length <= 31*24*time.Hour:
		day = d.From.AddDate(0, 0, now.Day()-1)
	default:
		day = time.Date(d.From.Year(), now.Month(), now.Day(), 0, 0, 0, 0, d.From.Location())
	}
	ok := day.Before(d.To) && (d.To.Sub(d.From) <= week || day.Day() == now.Day())
	d.Span, d.Recurs = dates.Span{From: day, To: day.AddDate(0, 0, 1)}, false
	return d, ok
}

// ahead reads a date by package dates. A name such as 元旦 is read as its date. length is that of the words read.
func (p *parser) ahead() (date dates.Mention, length int, ok bool) {
	if name, words := aliasIn(p.rest()); name != "" {
		date, ok = dates.Ahead(words+p.rest()[len(name):], p.now)
		return date, len(name) + len(date.Words) - len(words), ok && len(date.Words) >= len(words)
	}
	date, ok = dates.Ahead(p.rest(), p.now)
	if !ok || len(date.Words) == 0 || date.To.Sub(date.From) < 360*24*time.Hour {
		return date, len(date.Words), ok && len(date.Words) > 0
	}
	year := date
	behind := strings.TrimPrefix(p.rest()[len(year.Words):], "的")
	if name, words := aliasIn(behind); name != "" && name[0] >= utf8.RuneSelf { // "明年元旦"
		date, ok = dates.Ahead(year.Words+words, p.now)
		return date, len(p.rest()) - len(behind) + len(name), ok && date.OneDay()
	}
	return year, len(year.Words), true
}

// aliasIn returns the name at the beginning of a text whose date package dates reads from other words, and those words.
func aliasIn(text string) (name, words string) {
	for _, r := range ruleFile.All() {
		if r.List == "alias" {
			if name = compiled(r.Expr).FindString(text); name != "" {
				return name, r.Columns[0]
			}
		}
	}
	return "", ""
}

// takeDayOfMonth reads "the 3rd Friday of December", "the last day of next month", "the 15th of next month".
func (p *parser) takeDayOfMonth() (date dates.Mention, ok bool) {
	ok = p.try(func() bool {
		list, m := p.takeAny("nthOf", "nthDayOf", "lastDayOf")
		if m == nil {
			return false
		}
		month, length, found := p.ahead()
		if !found || month.OneDay() {
			return false
		}
		p.at += length
		switch list {
		case "nthOf":
			date, found = nthOf(month, m[1], m[2], p.now)
		case "nthDayOf":
			n, _ := count(m[1])
			date, found = dayOf(month, p.now, func(first time.Time) time.Time { return first.AddDate(0, 0, int(n)-1) })
		default:
			date, found = dayOf(month, p.now, func(first time.Time) time.Time {
				if m[1] == "last" {
					return first.AddDate(0, 1, -1)
				}
				return first
			})
		}
		return found
	})
	return date, ok
}

// nthOf returns a weekday of a month by its number.
func nthOf(month dates.Mention, ordinal, weekday string, now time.Time) (dates.Mention, bool) {
	day, nth := weekdayOf(weekday), nthIn(ordinal)
	return dayOf(month, now, func(first time.Time) time.Time {
		if nth == "L" {
			last := first.AddDate(0, 1, -1)
			return last.AddDate(0, 0, -(int(last.Weekday()-day)+7)%7)
		}
		return first.AddDate(0, 0, (int(day-first.Weekday())+7)%7+7*int(nth[1]-'1'))
	})
}

// dayOf returns a day of a month. A month that recurs is the next one whose day is not past.
func dayOf(month dates.Mention, now time.Time, find func(first time.Time) time.Time) (dates.Mention, bool) {
	if length := month.To.Sub(month.From); length < 28*24*time.Hour || length > 31*24*time.Hour {
		return dates.Mention{}, false
	}
	day := find(month.From)
	if today := now.Truncate(24 * time.Hour); month.Recurs && day.Before(today) {
		later, ok := dates.Ahead(month.Words, month.To)
		if !ok {
			return dates.Mention{}, false
		}
		month = later
		day = find(month.From)
	}
	month.Span, month.Recurs = dates.Span{From: day, To: day.AddDate(0, 0, 1)}, false
	return month, day.Month() == month.From.Month()
}
