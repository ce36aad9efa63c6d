package when

import (
	"strings"
	"time"
	"unicode/utf8"
)

// clockTime is a time of the day. An hour that is not exact is one of a clock's face.
type clockTime struct {
	hour, minute, second int
	exact                bool
	ofNow                bool // the time of the day that it is
	half                 bool // with am or pm
}

func (c clockTime) valid() bool {
	return c.hour <= 24 && 0 <= c.minute && c.minute < 60 && c.second < 60 && (c.hour < 24 || c.minute+c.second == 0)
}

// on returns the time of a day of the wall clock, with an hour that may be beyond the day's end.
func (c clockTime) on(day time.Time, hour int) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), hour, c.minute, c.second, 0, time.UTC)
}

// takeClock reads a time of the day. ok with an invalid time is a mistake that p notes.
func (p *parser) takeClock() (c clockTime, ok bool) {
	from := p.at
	ok = p.try(func() bool {
		if p.take("sameTime") != nil {
			c = clockTime{hour: p.now.Hour(), minute: p.now.Minute(), exact: true, ofNow: true}
			return true
		}
		list, m := p.takeAny("clockColon", "clockNamed", "clockDot", "clockEnglish", "clockPast", "clockSpelled", "clockAt", "clockLess", "lessClock",
			"clockChinese")
		if m == nil || p.text[p.at-1] < utf8.RuneSelf && list != "clockChinese" && p.inWord() {
			return false
		}
		c, ok = clockOf(list, m)
		for _, suffix := range []string{"过", "整", "钟", "半"} { // "9点过来开会"
			if at := p.at - len(suffix); list == "clockChinese" && p.text[at:p.at] == suffix && expression("clockText").MatchString(p.text[at:]) {
				p.at, m[2], c.minute = at, "", 0
			}
		}
		if list == "clockChinese" && p.measures(m[2], m[6]) { // "3点半小时的会", "3点10个人"
			p.at = from + len(strings.TrimRight(p.text[from:p.at-len(m[2]+m[6])], " "))
			c.minute = 0
		}
		if words := strings.LastIndex(m[0], "十分"); list == "clockChinese" && m[4] == "十" && words >= 0 {
			end := p.at
			if p.at -= len(m[0]) - words; p.follows("emphasis") { // "9点十分重要的会"
				c.minute = 0
			} else {
				p.at = end
			}
		}
		return ok
	})
	if ok && !c.valid() {
		return c, p.fail(from)
	}
	return c, ok
}

// measures reports whether a half or a number is that of the words behind it, and no part of the time.
func (p *parser) measures(half, number string) bool {
	return half+number != "" && p.follows("measure") || number != "" && p.inWord()
}

// groupsOfClock has the number of groups of the lists with several rules.
var groupsOfClock = map[string]int{"clockDot": 3, "clockSpelled": 3, "clockEnglish": 2}

// clockOf reads the groups of the rule that matched, which is named by its list. A time such as 8:30 may mean the evening; exact is
// set where its form or its size rules that out.
func clockOf(list string, m []string) (c clockTime, ok bool) {
	number := func(words ...string) int {
		n, known := count(strings.Join(words, ""))
		ok = ok && known
		return int(n)
	}
	ok = true
	if groups, ok := groupsOfClock[list]; ok {
		for len(m) > groups+1 && m[1] == "" { // the groups of a further rule
			m = append(m[:1:1], m[groups+1:]...)
		}
	}
	switch list {
	case "clockColon":
		c.hour, c.minute = number(m[1]), number(m[2])
		if m[3] != "" {
			c.second = number(m[3])
		}
		c.exact = m[1][0] == '0'
		c.halve(m[4])
	case "clockNamed":
		c = clockTime{hour: 12, exact: true}
		if m[1] == "midnight" {
			c.hour = 24
		}
	case "clockDot":
		c.hour, c.minute, c.exact = number(m[1]), number(m[2]), len(m[1]) == 2 && m[1][0] == '0'
		c.halve(m[3])
	case "clockSpelled":
		c.hour = number(m[1])
		if m[2] != "" {
			c.minute = number(strings.TrimLeft(strings.TrimPrefix(m[2], "oh"), " -"))
		}
		c.halve(m[3])
	case "clockLess", "lessClock":
		before, quarter, hour := m[2], m[3], m[1]
		if list == "lessClock" {
			before, quarter, hour = m[1], m[2], m[3]
		}
		c.hour, c.minute = number(hour)-1, 60-15
		if quarter == "" {
			c.minute = 60 - number(before)
		}
		if c.hour < 0 {
			c.hour = 23
		}
	case "clockEnglish":
		c.hour = number(m[1])
		c.halve(m[2])
	case "clockAt":
		c.hour = number(m[1], m[2])
	case "clockPast":
		c.hour = number(m[4], m[5])
		switch {
		case m[1] == "half":
			c.minute = 30
		case strings.HasSuffix(m[1], "quarter"):
			c.minute = 15
		default:
			c.minute = number(m[1])
		}
		if m[3] == "to" {
			c.hour, c.minute = c.hour-1, 60-c.minute
		}
	case "clockChinese":
		c.hour = number(m[1])
		switch {
		case m[2] != "":
			c.minute = 30
		case m[3] != "":
			c.minute = 15 * number(m[3])
		case m[4] != "":
			c.minute = number(m[4])
			if m[5] != "" {
				c.second = number(m[5])
			}
		case m[6] != "":
			c.minute = number(m[6])
		}
	}
	c.exact = c.exact || c.hour == 0 || c.hour > 12
	return c, ok
}

// halve reads am and pm.
func (c *clockTime) halve(meridiem string) {
	switch {
	case meridiem == "":
	case c.hour > 12:
		if meridiem[0] == 'a' {
			c.hour = 99 // "13:00 am"
		}
	case meridiem[0] == 'p':
		c.hour, c.exact, c.half = c.hour%12+12, true, true
	default:
		c.hour, c.exact, c.half = c.hour%12, true, true
	}
}

// dayPart is a part of the day: the time that it means alone, and the hours of a clock's face in it. Hours from first to last
// are in the second half of the day, and hours below night belong to the night behind it.
type dayPart struct {
	alone, first, last, night int
	until                     int // the first hour of a day of 24 hours that contradicts it; 0: none in the second half does
}

// contradicts reports whether a time of the day can't be in this part: "早上15点", "evening at 8 am".
func (d dayPart) contradicts(c clockTime) bool {
	return d.until > 0 && c.hour >= d.until || d.until == 0 && c.half && d.night <= c.hour && c.hour < 11
}

// holds reports whether an hour is in a part of the day, or close to it.
func (d dayPart) holds(hour int) bool {
	away := (hour - d.alone + 36) % 24
	return 8 <= away && away <= 16
}

var (
	morning   = dayPart{alone: 9, until: 13}
	early     = dayPart{alone: 9, until: 12}
	noon      = dayPart{alone: 12, first: 1, last: 4}
	afternoon = dayPart{alone: 15, first: 1, last: 11}
	dusk      = dayPart{alone: 18, first: 1, last: 11}
	evening   = dayPart{alone: 20, first: 5, last: 11, night: 5}
	midnight  = dayPart{alone: 24, first: 9, last: 11, night: 9}
)

var dayParts = map[string]dayPart{
	"凌晨": {alone: 1, until: 13}, "清晨": early, "早晨": early, "早上": early, "早间": early, "早": early, "晨": early,
	"一早": early, "一大早": early, "一早上": early, "一大早上": early, "大清早": early, "大早上": early, "大中午": noon, "大晚上": evening, "大半夜": midnight,
	"上午": morning, "午前": morning, "中午": noon, "正午": noon, "午间": noon, "下午": afternoon, "午后": afternoon, "傍晚": dusk,
	"晚上": evening, "晚间": evening, "夜里": evening, "夜晚": evening, "夜间": evening, "晚": evening, "夜": evening,
	"半夜": midnight, "午夜": midnight, "深夜": midnight,
	"morning": morning, "noon": noon, "midday": noon, "midnight": midnight, "afternoon": afternoon, "evening": evening,
	"night": evening, "tonight": evening,
}

// partIn returns the part of the day that the words of a day end with, as in 明晚 and "this morning".
func partIn(words string) string {
	for name := range dayParts {
		if strings.HasSuffix(words, name) && !strings.HasSuffix(words, "midnight") {
			return name
		}
	}
	return ""
}

// hourIn returns the hour of a time in a part of the day. It is 24 or more behind midnight.
func (c clockTime) hourIn(name string) int {
	part, known := dayParts[name]
	switch {
	case !known || c.hour > 12 || c.half:
		return c.hour
	case c.hour%12 < part.night:
		return c.hour%12 + 24
	case part.first <= c.hour && c.hour <= part.last:
		return c.hour + 12
	case name == "凌晨":
		return c.hour % 12
	}
	return c.hour
}
