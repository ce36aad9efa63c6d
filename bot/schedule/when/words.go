package when

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Words describes a spec in a language of package wording, zh or en: "每周五 09:00", "every Friday at 09:00". Times are in the
// zone of the spec, see [Spec.Clock], which the words do not name. [Parse] reads them again.
func (s Spec) Words(lang string) string {
	w := englishWords
	if lang == "zh" {
		w = chineseWords
	}
	switch s.kind {
	case once:
		return w.once(s.first())
	case byCron:
		c, _, err := parseCron(s.cron)
		if err != nil {
			return ""
		}
		return w.cron(c, s.cron)
	case byInterval:
		return w.interval(s)
	default:
		return ""
	}
}

// language has the words of a language for times.
type language struct {
	chinese  bool
	at       string // between day and time
	and      string // between the last two of a list
	comma    string
	units    map[unit]string
	weekdays [7]string
}

var (
	chineseWords = language{
		chinese: true, at: " ", and: "、", comma: "、",
		units:    map[unit]string{seconds: "秒", minutes: "分钟", hours: "小时", days: "天", weeks: "周"},
		weekdays: [7]string{"周日", "周一", "周二", "周三", "周四", "周五", "周六"},
	}
	englishWords = language{
		at: " at ", and: " and ", comma: ", ",
		units:    map[unit]string{seconds: "second", minutes: "minute", hours: "hour", days: "day", weeks: "week"},
		weekdays: [7]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
	}
)

// clockWords writes 09:00 and 15:30:20. The hour has two figures, as elsewhere: 5:00 could be that of an afternoon.
func clockWords(t time.Time) string {
	if t.Second() > 0 {
		return t.Format("15:04:05")
	}
	return t.Format("15:04")
}

func (w language) once(t time.Time) string {
	if w.chinese {
		return fmt.Sprintf("%d年%d月%d日（%s）%s", t.Year(), t.Month(), t.Day(), w.weekdays[t.Weekday()], clockWords(t))
	}
	return t.Format("Monday, 2 January 2006") + w.at + clockWords(t)
}

// interval says a repetition by the calendar with its day and time, and one by hours without: those are counted from the first time.
func (w language) interval(s Spec) string {
	t := s.first()
	var words string
	switch {
	case w.chinese && s.every == 1 && s.unit == hours:
		words = "每小时"
	case w.chinese && s.every == 1:
		words = "每" + w.units[s.unit]
	case w.chinese:
		words = "每" + strconv.Itoa(s.every) + w.units[s.unit]
	case s.every == 1:
		words = "every " + w.units[s.unit]
	default:
		words = fmt.Sprintf("every %d %ss", s.every, w.units[s.unit])
	}
	switch {
	case s.unit == weeks && w.chinese:
		words += "的" + w.weekdays[t.Weekday()]
	case s.unit == weeks:
		words += " on " + w.weekdays[t.Weekday()]
	}
	if s.unit.byCalendar() {
		words += w.at + clockWords(t)
	}
	return words
}

// cron describes the expressions that phrases mean. Others are shown as they are.
func (w language) cron(c cron, expr string) string {
	days, ok := w.days(c, strings.Fields(expr))
	if !ok || bits.OnesCount64(c.minute.bits) > 1 || bits.OnesCount64(c.hour.bits) > maxNamedHours {
		return "cron " + expr
	}
	var times []string
	for hour := range 24 {
		if c.hour.has(hour) {
			times = append(times, clockWords(time.Date(1, 1, 1, hour, bits.TrailingZeros64(c.minute.bits), 0, 0, time.UTC)))
		}
	}
	return days + w.at + w.list(times)
}

// maxNamedHours is the number of hours of a day that words name.
const maxNamedHours = 6

// days describes the days of an expression.
func (w language) days(c cron, fields []string) (words string, ok bool) {
	day, month, weekday := fields[2], fields[3], fields[4]
	switch {
	case month != "*" && bits.OnesCount64(c.month.bits) == 1 && weekday == "*" && bits.OnesCount64(c.day.bits) == 1 && !c.day.last:
		d, m := bits.TrailingZeros64(c.day.bits), time.Month(bits.TrailingZeros64(c.month.bits))
		if w.chinese {
			return fmt.Sprintf("每年%d月%d日", m, d), true
		}
		return fmt.Sprintf("every year on %s %d", m, d), true
	case month != "*" && !c.month.starred && !c.day.starred && weekday == "*" && stepOf(c.month.bits) > 0:
		n := stepOf(c.month.bits)
		return w.choose(fmt.Sprintf("每%d个月", n), fmt.Sprintf("every %d months on ", n)) + w.daysOfMonth(c), true
	case month != "*" || day != "*" && weekday != "*" || strings.HasPrefix(day+weekday, "*/") || strings.HasSuffix(weekday, "*"):
		if month == "*" && weekday == "*" && day == "*" {
			return w.choose("每天", "every day"), true
		}
		if month == "*" && weekday == "*" && !c.day.starred {
			return w.choose("每月", "every month on ") + w.daysOfMonth(c), true
		}
		return "", false
	}
	return w.daysOfWeek(c)
}

// stepOf returns the distance of months that are equally far from each other, or 0.
func stepOf(months uint64) int {
	for _, n := range []int{2, 3, 4, 6} {
		for first := 1; first <= n; first++ {
			var set uint64
			for m := first; m <= 12; m += n {
				set |= 1 << m
			}
			if set == months {
				return n
			}
		}
	}
	return 0
}

func (w language) choose(chinese, english string) string {
	if w.chinese {
		return chinese
	}
	return english
}

// daysOfWeek returns false for a combination that no short phrase says; the caller then shows the expression itself.
func (w language) daysOfWeek(c cron) (string, bool) {
	var nth []string
	for day, set := range c.weekday.nth {
		for n := range 6 {
			if set>>n&1 == 1 {
				nth = append(nth, w.choose([]string{"最后一", "第一", "第二", "第三", "第四", "第五"}[n]+"个"+w.weekdays[day],
					[]string{"last", "first", "second", "third", "fourth", "fifth"}[n]+" "+w.weekdays[day]))
			}
		}
	}
	set := uint8(c.weekday.bits & 0x7f)
	switch {
	case c.weekday.starred || len(nth) > 1 || len(nth) == 1 && set != 0:
		return "", false
	case len(nth) == 1:
		return w.choose("每月", "every month on the ") + nth[0], true
	case set == workdays:
		return w.choose("每个工作日", "every weekday"), true
	case set == weekend:
		return w.choose("每个周末", "every weekend"), true
	}
	var names []string
	for n := range 7 {
		if day := (n + 1) % 7; set>>day&1 == 1 {
			names = append(names, w.weekdays[day])
		}
	}
	return w.choose("每", "every ") + w.list(names), true
}

func (w language) daysOfMonth(c cron) string {
	var names []string
	for n := 1; n <= 31; n++ {
		if c.day.has(n) {
			names = append(names, w.choose(fmt.Sprint(n, "号"), "the "+ordinal(n)))
		}
	}
	if c.day.last {
		names = append(names, w.choose("最后一天", "the last day"))
	}
	return w.list(names)
}

// ordinal writes 1st, 22nd.
func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 && 1 <= n%10 && n%10 <= 3 {
		suffix = []string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.Itoa(n) + suffix
}

func (w language) list(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], w.comma) + w.and + names[last]
}
