package when

import (
	"math"
	"strconv"
	"strings"
	"time"

	"ebb/memory/dates"
)

// distance is a time ahead in units of the calendar and in seconds.
type distance struct{ months, days, workdays, seconds int64 }

// add adds a number of units; tenths such as 1.5 are for the units that have a fixed length.
func (d *distance) add(n int64, fraction float64, name string) bool {
	length := func(seconds int64) bool {
		d.seconds += n * seconds
		if part := fraction * float64(seconds); n > 0 || part >= 1 {
			d.seconds += int64(math.Round(part))
		}
		return true
	}
	switch strings.TrimSuffix(name, "s") {
	case "秒", "秒钟", "second", "sec", "", "s":
		return length(1)
	case "分", "分钟", "minute", "min", "m":
		return length(60)
	case "刻", "刻钟":
		return length(15 * 60)
	case "小时", "钟", "钟头", "hour", "hr", "h":
		return length(3600)
	case "天", "日", "day", "d":
		d.days += n
		return d.add(0, 24*fraction, "h")
	case "周", "星期", "礼拜", "week", "w":
		return d.add(7*n, 7*fraction, "d")
	case "fortnight":
		return d.add(14*n, 14*fraction, "d")
	case "月", "month":
		d.months += n
		d.days += int64(30 * fraction)
	case "quarter":
		d.months += 3 * n
		d.days += int64(90 * fraction)
	case "年", "year":
		d.months += 12*n + int64(12*fraction)
	default:
		return false
	}
	return true
}

// takeSpan reads one number of units, such as "3 minutes".
func (p *parser) takeSpan(d *distance) bool {
	return p.try(func() bool {
		if _, m := p.takeAny("workSpan", "workSpanEnglish"); m != nil {
			n, ok := count(m[1] + strings.Join(m[2:], ""))
			d.workdays += n
			return ok
		}
		if m := p.take("pointSpan"); m != nil {
			tenths, ok := count(m[2])
			return ok && d.addNumber(m[1], "."+strconv.FormatInt(tenths, 10), m[3], false)
		}
		list, m := p.takeAny("halfSpan", "englishHalf", "englishQuarter", "englishSpan", "span")
		if m == nil || list != "span" && list != "halfSpan" && p.inWord() {
			return false
		}
		switch list {
		case "halfSpan":
			return d.add(0, 0.5, m[1])
		case "englishHalf":
			return d.add(0, 0.5, m[2])
		case "englishQuarter":
			return d.add(0, 0.25, m[1])
		case "englishSpan":
			return d.addNumber(m[1]+m[3], m[2], m[5], m[4]+m[6] != "")
		}
		if m[5] == "月" && m[3] == "" { // "12月25日" is a date
			return false
		}
		return d.addNumber(m[1], m[2], m[5], m[4]+m[6] != "")
	})
}

func (d *distance) addNumber(number, tenths, unit string, half bool) bool {
	n, ok := count(number)
	fraction, err := strconv.ParseFloat("0"+tenths, 64)
	if half {
		fraction += 0.5
	}
	return ok && err == nil && d.add(n, fraction, unit)
}

// takeSpans reads numbers of units in a row.
func (p *parser) takeSpans(d *distance) bool {
	if !p.takeSpan(d) {
		return false
	}
	for p.takeSpan(d) || p.try(func() bool { return p.take("spanAnd") != nil && p.takeSpan(d) }) {
	}
	return true
}

// takeDistance reads "in 3 minutes", "3 minutes later".
func (p *parser) takeDistance() (d distance, ok bool) {
	ok = p.try(func() bool {
		list, _ := p.takeAny("ahead", "aheadEnglish")
		d = distance{}
		return p.takeSpans(&d) && (p.take("later") != nil || list != "")
	})
	return d, ok
}

// takeBareSpan reads "5m tea", "1h30m tea": hours, minutes and seconds before a blank.
func (p *parser) takeBareSpan() (d distance, ok bool) {
	ok = p.try(func() bool {
		return !p.last && p.takeSpans(&d) && d.seconds > 0 && d.days+d.months+d.workdays == 0 &&
			(p.rest() == "" || p.rest()[0] == ' ') && !p.follows("ofSpan")
	})
	return d, ok
}

// tooFar reports whether a distance ends beyond the limit, before it is computed.
func (d distance) tooFar() bool {
	const years = maxYears + 1
	return d.months > 12*years || d.days > 366*years || d.workdays > 261*years || d.seconds > 366*years*86400
}

// byCalendar reports whether a distance is in days or longer units only.
func (d distance) byCalendar() bool { return d.seconds == 0 && d.days+d.workdays+d.months > 0 }

// day returns the day of a distance on the wall clock, at the same time of the day.
func (d distance) day(now time.Time) time.Time {
	date := dates.AddMonths(now, int(d.months)).AddDate(0, 0, int(d.days))
	for left := d.workdays; left > 0; {
		date = date.AddDate(0, 0, 1)
		if workdays>>date.Weekday()&1 == 1 {
			left--
		}
	}
	return date.Add(now.Sub(time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)))
}
