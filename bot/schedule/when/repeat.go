package when

import (
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// repetition is a number of units, and the days within a week, month or year. The zero values of days mean those of today.
type repetition struct {
	every    int64
	unit     unit
	weekdays uint8  // bits from Sunday on
	nth      string // for a weekday of a month, as in a cron expression: "#2" or "L"
	days     uint32 // days of a month, as bits
	lastDay  bool
	months   string // months of a year, as in a cron expression
}

// takeRepetition reads "每周五", "every 2 hours". A part of the day may be one of its words.
func (p *parser) takeRepetition() (r repetition, part string, ok bool) {
	ok = p.try(func() bool {
		var list string
		var m []string
		list, m = p.takeAny("everyWorkday", "bareWorkday", "everyWeekend", "otherDay", "otherWeek", "otherWeekday", "everyPart", "everyDay",
			"everyOnWeekday", "weekRange", "everyWeek", "everyMonth", "everyQuarter", "everyYear", "everyHour", "everyNth", "everyOnDay",
			"everyLastDay", "everySpan")
		if m == nil {
			return false
		}
		if part, ok = p.repetition(&r, list, m); !ok {
			return false
		}
		return true
	})
	return r, part, ok
}

// repetition fills in r from the words that a list matched, and from those behind them.
func (p *parser) repetition(r *repetition, list string, m []string) (part string, ok bool) {
	r.every, r.unit = 1, days
	switch list {
	case "everyWorkday":
		r.unit, r.weekdays = weeks, workdays
	case "bareWorkday":
		r.unit, r.weekdays = weeks, workdays
		return "", p.timeFollows()
	case "everyWeekend":
		r.unit, r.weekdays = weeks, weekend
	case "otherDay":
		r.every = 2
	case "otherWeek":
		r.every, r.unit = 2, weeks
		p.takeWeekdays(r)
	case "otherWeekday":
		r.every, r.unit, r.weekdays = 2, weeks, 1<<weekdayOf(m[1])
	case "everyPart":
		return strings.Join(m[1:], ""), true
	case "everyOnWeekday":
		r.unit, r.weekdays = weeks, 1<<weekdayOf(strings.Join(m[1:], ""))
		p.takeMoreWeekdays(r)
	case "weekRange":
		r.unit = weeks
		r.addWeekdays(weekdayOf(m[1]+m[3]), weekdayOf(m[2]+m[4]))
	case "everyWeek":
		r.unit = weeks
		p.takeWeekdays(r)
	case "everyMonth":
		r.unit = months
		p.takeDaysOfMonth(r)
	case "everyQuarter":
		r.every, r.unit = 3, months
		from := p.at
		if p.takeDaysOfMonth(r); r.weekdays != 0 || r.days != 0 || r.lastDay {
			p.fail(from) // quarters count from the month of today
		}
	case "everyYear":
		r.unit = years
		return "", p.takeDateOfYear(r)
	case "everyHour":
		r.unit = hours
		return "", r.set(1, strings.Join(m[1:], ""))
	case "everyOnDay":
		r.unit = months
		p.addDays(r, strings.Join(m[1:], ""))
	case "everyLastDay":
		r.unit, r.lastDay = months, true
	case "everyNth":
		r.unit = months
		r.weekdays, r.nth = 1<<weekdayOf(m[2]+m[4]), nthIn(m[1]+m[3])
	case "everySpan":
		return "", p.takeInterval(r)
	}
	return "", true
}

// takeInterval reads the words behind "every": a number of units, or a date of the year.
func (p *parser) takeInterval(r *repetition) bool {
	var d distance
	if !p.takeSpans(&d) {
		r.unit = years
		return p.takeYearly(r)
	}
	switch {
	case d.workdays > 0:
		return false
	case d.seconds > 0 && d.days+d.months == 0:
		r.every, r.unit = d.seconds, seconds
	case d.months == 0 && d.seconds == 0 && d.days > 0 && d.days%7 == 0:
		r.every, r.unit = d.days/7, weeks
		p.takeWeekdays(r)
	case d.months == 0 && d.seconds == 0 && d.days > 0:
		r.every = d.days
	case d.days == 0 && d.seconds == 0 && d.months == 12:
		r.unit = years
		return p.takeDateOfYear(r)
	case d.days == 0 && d.seconds == 0 && d.months > 0:
		r.every, r.unit = d.months, months
		p.takeDaysOfMonth(r)
	default: // less than a second, or a mixture
		r.every, r.unit = 0, seconds
	}
	return true
}

// set reads a unit with a fixed length.
func (r *repetition) set(n int64, name string) bool {
	if name == "hourly" {
		name = "hour"
	}
	var d distance
	ok := d.add(n, 0, name)
	r.every, r.unit = d.seconds, seconds
	return ok
}

// takeWeekdays reads the days behind "每周", "weekly".
func (p *parser) takeWeekdays(r *repetition) {
	if p.take("onceEach") != nil {
		return
	}
	from := p.at
	list, m := p.takeAny("onWeekday", "onShortWeekday", "onWeekdayEnglish")
	if m == nil {
		return
	}
	if strings.HasPrefix(p.rest(), "次") { // "每周三次"
		p.fail(from)
		return
	}
	first := weekdayOf(strings.Join(m[1:], ""))
	r.weekdays = 1 << first
	if list != "onWeekdayEnglish" {
		p.takeMoreShortWeekdays(r, first)
	}
	p.takeMoreWeekdays(r)
}

// takeMoreShortWeekdays reads 三五 behind 每周一. The days are in their order, and one before 点 is an hour.
func (p *parser) takeMoreShortWeekdays(r *repetition, last time.Weekday) {
	for {
		more := p.try(func() bool {
			if p.clockFollows() {
				return false
			}
			m := p.take("onShortWeekday")
			if m == nil {
				return false
			}
			next := weekdayOf(strings.Join(m[1:], ""))
			if (next+6)%7 <= (last+6)%7 {
				return false
			}
			last = next
			return true
		})
		if !more {
			return
		}
		r.weekdays |= 1 << last
	}
}

// clockFollows reports whether a time of the day is next.
func (p *parser) clockFollows() bool {
	from, bad := p.at, p.bad
	c, ok := p.takeClock()
	p.at, p.bad = from, bad
	return ok && c.valid()
}

// timeFollows reports whether a time or a part of the day is next.
func (p *parser) timeFollows() bool {
	from := p.at
	defer func() { p.at = from }()
	p.takeAny("between", "comma")
	return p.clockFollows() || p.follows("partOfDay")
}

// takeMoreWeekdays reads "和周五", "到周五", ", Wednesday and Friday", " to Friday".
func (p *parser) takeMoreWeekdays(r *repetition) {
	if bits.OnesCount8(r.weekdays) == 1 {
		if _, m := p.takeAny("toWeekday", "toWeekdayEnglish"); m != nil {
			r.addWeekdays(time.Weekday(bits.TrailingZeros8(r.weekdays)), weekdayOf(m[1]))
			return
		}
	}
	for {
		_, m := p.takeAny("andWeekday", "andWeekdayEnglish")
		if m == nil {
			return
		}
		r.weekdays |= 1 << weekdayOf(m[1])
	}
}

// addWeekdays adds the days of a range, which may go beyond the end of the week.
func (r *repetition) addWeekdays(from, to time.Weekday) {
	for n := from; n%7 != to; n++ {
		r.weekdays |= 1 << (n % 7)
	}
	r.weekdays |= 1 << to
}

// takeDaysOfMonth reads the days behind "每月", "monthly".
func (p *parser) takeDaysOfMonth(r *repetition) {
	switch list, m := p.takeAny("onceEach", "onLastDay", "onFirstDay", "onNth", "onNthLast", "onNthEnglish", "onDay"); list {
	case "onLastDay":
		r.lastDay = true
	case "onFirstDay":
		r.days |= 1 << 1
	case "onNth":
		r.weekdays, r.nth = 1<<weekdayOf(m[2]), nthIn(m[1])
	case "onNthLast":
		r.weekdays, r.nth = 1<<weekdayOf(m[1]), nthIn("last")
	case "onNthEnglish":
		r.weekdays, r.nth = 1<<weekdayOf(m[2]), nthIn(m[1])
	case "onDay":
		p.addDays(r, strings.Join(m[1:], ""))
	case "":
		p.refuseNamedDay()
	}
}

// addDays adds a day of the month, and those behind it: "和15号", "and the 15th".
func (p *parser) addDays(r *repetition, number string) {
	for from := p.at; ; from = p.at {
		if !r.addDay(number) {
			p.fail(from)
		}
		more := p.take("andDay")
		if more == nil {
			return
		}
		number = strings.Join(more[1:], "")
	}
}

// refuseNamedDay notes a day that no repetition has, such as that of a festival, behind a month or a year.
func (p *parser) refuseNamedDay() {
	if p.follows("namedDay") && !p.follows("asks") && !p.timeFollows() {
		p.fail(p.at)
	}
}

// addDay adds a day of the month. The last day of the longest months means that of each.
func (r *repetition) addDay(number string) bool {
	n, ok := count(number)
	if n == 31 {
		r.lastDay = true
		return ok
	}
	r.days |= 1 << (n & 31)
	return ok && 1 <= n && n <= 31
}

// takeDateOfYear reads the date behind "每年", "yearly". It may be missing.
func (p *parser) takeDateOfYear(r *repetition) bool {
	if p.take("onceEach") == nil && !p.try(func() bool { p.take("onDate"); return p.takeYearly(r) }) {
		p.refuseNamedDay()
	}
	return true
}

// takeYearly reads a date without its year.
func (p *parser) takeYearly(r *repetition) bool {
	date, length, ok := p.ahead()
	if !ok || !date.Yearly || !date.OneDay() {
		return false
	}
	p.at += length
	r.days, r.months = 1<<date.From.Day(), strconv.Itoa(int(date.From.Month()))
	return true
}

// interval is the spec of a number of seconds.
func (r repetition) interval(now time.Time) (Spec, error) {
	switch {
	case r.every < 1:
		return Spec{}, ErrSoon
	case r.every > maxYears*366*secondsOf[days]:
		return Spec{}, ErrFar
	}
	longest := seconds
	for _, u := range []unit{minutes, hours} {
		if r.every%secondsOf[u] == 0 {
			longest = u
		}
	}
	return check(newInterval(now.Add(time.Duration(r.every)*time.Second), int(r.every/secondsOf[longest]), longest), now)
}

// onWallClock is the spec of a number of days or weeks.
func (r repetition) onWallClock(c clockTime, wall, now time.Time) (Spec, error) {
	if r.unit == years || bits.OnesCount8(r.weekdays) > 1 {
		return Spec{}, ErrUnsupported
	}
	if r.every*secondsOf[r.unit] > maxYears*366*secondsOf[days] {
		return Spec{}, ErrFar
	}
	for n := range 9 {
		t := c.on(wall.AddDate(0, 0, n), c.hour)
		if first, _ := instants(t, now.Location()); first.After(now) && (r.unit == days || r.weekdays>>t.Weekday()&1 == 1) {
			return check(newInterval(first, int(r.every), r.unit), now)
		}
	}
	return Spec{}, ErrUnsupported
}

// shift moves the days of a repetition to the next ones: a night ends behind midnight.
func (r *repetition) shift() bool {
	if r.unit == weeks {
		r.weekdays = r.weekdays<<1&0x7f | r.weekdays>>6
		return r.weekdays != 0
	}
	return r.unit == days
}

// complete fills in the days of today where the words have none.
func (r *repetition) complete(today time.Time) {
	switch {
	case r.unit == weeks && r.weekdays == 0:
		r.weekdays = 1 << today.Weekday()
	case r.unit == months && r.weekdays == 0 && r.days == 0 && !r.lastDay:
		r.addDay(strconv.Itoa(today.Day()))
	case r.unit == years && r.days == 0:
		r.days, r.months = 1<<today.Day(), strconv.Itoa(int(today.Month()))
	}
}

// fields are the fields of a cron expression for the days.
func (r repetition) fields(today time.Time) (day, month, weekday string, ok bool) {
	day, month, weekday = "*", "*", "*"
	switch r.unit {
	case weeks:
		weekday = listOf(uint32(r.weekdays))
	case months:
		if 12%r.every != 0 {
			return "", "", "", false
		}
		if r.every > 1 {
			var list []string
			for n := range 12 / r.every {
				list = append(list, strconv.Itoa((int(today.Month())-1+int(n*r.every))%12+1))
			}
			month = strings.Join(list, ",")
		}
		if r.weekdays != 0 {
			weekday = strconv.Itoa(bits.TrailingZeros8(r.weekdays)) + r.nth
			break
		}
		day = r.daysOfMonth()
	case years:
		day, month = r.daysOfMonth(), r.months
	}
	return day, month, weekday, true
}

func (r repetition) daysOfMonth() string {
	days := listOf(r.days)
	if r.lastDay {
		days = strings.TrimPrefix(days+",L", ",")
	}
	return days
}

// listOf writes bits as a list of their places.
func listOf(set uint32) string {
	var items []string
	for n := range 32 {
		if set>>n&1 == 1 {
			items = append(items, strconv.Itoa(n))
		}
	}
	return strings.Join(items, ",")
}
