package dates

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/memory/text"
	"ebb/sessions/rules"
)

//go:embed rules.tsv
var ruleLines string

var ruleFile = rules.Read(ruleLines)

// dateRule is one way to write a date. days gets the folded groups of its pattern; false says that they mean no date.
type dateRule struct {
	name    string // its list in rules.tsv
	english bool   // every match has one of the dateWords
	bare    bool   // a day of the week without the words for which one
	monthly bool   // likewise of the month
	next    bool   // the first such day that is not past
	days    func(m []string, day time.Time) (Span, bool)
	pattern string
	re      func() *regexp.Regexp
}

const chineseDigits = "一二两三四五六七八九十"

// relativeDates count from the day of the text. Longer words precede those that they contain.
var (
	relativeRules = append(chineseRules, allEnglish(englishRules)...)
	relativeDates = newDateGrammar(relativeRules...)
	allDates      = newDateGrammar(append(append([]*dateRule{}, absoluteRules...), relativeRules...)...)
)

func allEnglish(rules []*dateRule) []*dateRule {
	for _, r := range rules {
		r.english = true
	}
	return rules
}

var chineseDays = map[string][2]int{
	"大前天": {-3, 1}, "前天": {-2, 1}, "昨天": {-1, 1}, "昨日": {-1, 1}, "昨晚": {-1, 1}, "昨夜": {-1, 1}, "昨儿": {-1, 1},
	"今天": {0, 1}, "今日": {0, 1}, "今晚": {0, 1}, "今早": {0, 1}, "今晨": {0, 1}, "今夜": {0, 1}, "今儿": {0, 1}, "今明两天": {0, 2},
	"明天": {1, 1}, "明日": {1, 1}, "明晚": {1, 1}, "明早": {1, 1}, "明晨": {1, 1}, "明儿": {1, 1}, "明后天": {1, 2}, "明后两天": {1, 2},
	"后天": {2, 1}, "大后天": {3, 1},
}

var chineseRules = []*dateRule{
	{name: "yearMonthDay", days: func(m []string, day time.Time) (Span, bool) {
		month, ok := Number(m[2])
		if !ok || m[3] == "" {
			return monthOf(day.Year()+years[m[1]], month, day), ok && 1 <= month && month <= 12
		}
		return dateOf(day.Year()+years[m[1]], month, m[3], day)
	}},
	{name: "yearEnd", days: func(m []string, day time.Time) (Span, bool) {
		return dateOf(day.Year()+years[m[1]], 12, "31", day)
	}},
	{name: "year", days: func(m []string, day time.Time) (Span, bool) {
		return yearOf(day.Year()+years[m[1]], day), true
	}},
	{name: "monthDay", days: func(m []string, day time.Time) (Span, bool) {
		month := AddMonths(day, countSteps(m[1]))
		return dateOf(month.Year(), int(month.Month()), m[2], day)
	}},
	{name: "monthEnd", days: func(m []string, day time.Time) (Span, bool) {
		return lastDay(AddMonths(day, countSteps(m[1])), 1), true
	}},
	{name: "monthBegin", days: func(m []string, day time.Time) (Span, bool) {
		month := AddMonths(day, countSteps(m[1]))
		from := monthOf(month.Year(), int(month.Month()), day).From
		return Span{From: from, To: from.AddDate(0, 0, 10)}, true
	}},
	{name: "month", days: func(m []string, day time.Time) (Span, bool) {
		month := AddMonths(day, countSteps(m[1]))
		return monthOf(month.Year(), int(month.Month()), day), true
	}},
	{name: "quarter", days: func(m []string, day time.Time) (Span, bool) { return quarterOf(day, countSteps(m[1])), true }},
	{name: "weekday", days: func(m []string, day time.Time) (Span, bool) {
		return weekdayIn(mondayOf(day).AddDate(0, 0, 7*countSteps(m[1])), m[2]), true
	}},
	{name: "week", days: func(m []string, day time.Time) (Span, bool) {
		from := mondayOf(day).AddDate(0, 0, 7*countSteps(m[1]))
		return Span{From: from, To: from.AddDate(0, 0, 7)}, true
	}},
	{name: "bareWeekday", bare: true, days: func(m []string, day time.Time) (Span, bool) {
		return nextIfPast(weekdayIn(mondayOf(day), m[1]+m[2]), day), true
	}},
	{name: "day", days: func(m []string, day time.Time) (Span, bool) {
		d, ok := chineseDays[m[0]]
		return Span{From: day.AddDate(0, 0, d[0]), To: day.AddDate(0, 0, d[0]+d[1])}, ok
	}},
	{name: "away", days: func(m []string, day time.Time) (Span, bool) {
		n := 1
		if m[3] == "前" {
			n = -1
		}
		if m[1] == "半" {
			return halfSpan(m[2], n, day)
		}
		count, ok := Number(m[1])
		span, known := spanAhead(day, n*count, m[2])
		return span, ok && known
	}},
	{name: "awayAgain", days: func(m []string, day time.Time) (Span, bool) {
		n, ok := Number(m[1])
		span, known := spanAhead(day, n, m[2])
		return span, ok && known
	}},
}

var englishRules = []*dateRule{
	{name: "englishBeyond", days: func(m []string, day time.Time) (Span, bool) {
		if strings.HasPrefix(m[1], "after") {
			return oneDay(day.AddDate(0, 0, 2)), true
		}
		return oneDay(day.AddDate(0, 0, -2)), true
	}},
	{name: "englishToday", days: func(_ []string, day time.Time) (Span, bool) {
		return oneDay(day), true
	}},
	{name: "englishTomorrow", days: func(_ []string, day time.Time) (Span, bool) { return oneDay(day.AddDate(0, 0, 1)), true }},
	{name: "englishYesterday", days: func(_ []string, day time.Time) (Span, bool) { return oneDay(day.AddDate(0, 0, -1)), true }},
	{name: "englishNextWeekday", days: func(m []string, day time.Time) (Span, bool) {
		this := weekdayIn(mondayOf(day), m[2])
		if m[1] == "next" {
			return shiftDays(this, 7), true
		}
		if this.From.Before(day) {
			return this, true
		}
		return shiftDays(this, -7), true
	}},
	{name: "englishOnWeekday", bare: true, days: func(m []string, day time.Time) (Span, bool) {
		return nextIfPast(weekdayIn(mondayOf(day), m[1]), day), true
	}},
	{name: "englishWeekday", bare: true, days: func(m []string, day time.Time) (Span, bool) {
		return nextIfPast(weekdayIn(mondayOf(day), m[1]), day), true
	}},
	{name: "englishIn", days: func(m []string, day time.Time) (Span, bool) {
		n, ok := Number(m[1])
		span, known := spanAhead(day, n, m[2])
		return span, ok && known
	}},
	{name: "englishAgo", days: func(m []string, day time.Time) (Span, bool) {
		n, ok := Number(m[1])
		if m[3] == "ago" {
			n = -n
		}
		span, known := spanAhead(day, n, m[2])
		return span, ok && known
	}},
	{name: "englishEnd", days: func(m []string, day time.Time) (Span, bool) {
		switch n := englishOffset[m[1]]; m[2] {
		case "month":
			return lastDay(AddMonths(day, n), 1), true
		case "quarter":
			return oneDay(quarterOf(day, n).To.AddDate(0, 0, -1)), true
		default:
			return dateOf(day.Year()+n, 12, "31", day)
		}
	}},
	{name: "englishUnit", days: func(m []string, day time.Time) (Span, bool) {
		n := englishOffset[m[1]]
		week := mondayOf(day).AddDate(0, 0, 7*n)
		switch m[2] {
		case "week":
			return Span{From: week, To: week.AddDate(0, 0, 7)}, true
		case "weekend":
			return weekdayIn(week, "末"), true
		case "month":
			month := AddMonths(day, n)
			return monthOf(month.Year(), int(month.Month()), day), true
		case "quarter":
			return quarterOf(day, n), true
		default:
			return yearOf(day.Year()+n, day), true
		}
	}},
}

// absoluteRules are for questions only: a fact keeps the date that it names. A date without a year is the last one, or
// the next one within a month.
var absoluteRules = []*dateRule{
	{name: "dateInFigures", days: func(m []string, day time.Time) (Span, bool) {
		year, _ := Number(m[1])
		month, _ := Number(m[2])
		return dateOf(year, month, m[3], day)
	}},
	{name: "monthInFigures", days: func(m []string, day time.Time) (Span, bool) {
		year, _ := Number(m[1])
		month, _ := Number(m[2])
		return monthOf(year, month, day), 1 <= month && month <= 12
	}},
	{name: "dateWithoutYear", days: func(m []string, day time.Time) (Span, bool) {
		month, _ := Number(m[1] + m[3])
		return lastDate(month, m[2]+m[4], "", day)
	}},
	{name: "monthWithoutYear", days: func(m []string, day time.Time) (Span, bool) {
		month, _ := Number(m[1])
		return recentMonth(month, "", day)
	}},
	{name: "dayWithoutMonth", monthly: true, days: func(m []string, day time.Time) (Span, bool) {
		span, ok := dateOf(day.Year(), int(day.Month()), m[1], day)
		if ok && !span.From.After(day.AddDate(0, 0, 7)) {
			return span, true
		}
		before := AddMonths(day, -1)
		return dateOf(before.Year(), int(before.Month()), m[1], day)
	}},
	{name: "recentDays", days: func(_ []string, day time.Time) (Span, bool) {
		return Span{From: day.AddDate(0, 0, -7), To: day.AddDate(0, 0, 1)}, true
	}},
	{english: true, name: "englishDate", days: func(m []string, day time.Time) (Span, bool) {
		return lastDate(months[m[1][:3]], m[2], m[3], day)
	}},
	{english: true, name: "englishDayOf", days: func(m []string, day time.Time) (Span, bool) {
		return lastDate(months[m[2][:3]], m[1], m[3], day)
	}},
	{english: true, name: "englishMonthAndYear", days: func(m []string, day time.Time) (Span, bool) {
		return recentMonth(months[m[1][:3]], m[2], day)
	}},
	// "may" and "march" alone are words of every day.
	{english: true, name: "englishMonthBehind", days: func(m []string, day time.Time) (Span, bool) {
		return recentMonth(months[m[1][:3]], m[2], day)
	}},
	{english: true, name: "englishMonth", days: func(m []string, day time.Time) (Span, bool) {
		return recentMonth(months[m[1][:3]], "", day)
	}},
	{name: "yearInFigures", days: func(m []string, day time.Time) (Span, bool) {
		year, ok := Number(m[1] + m[2])
		return yearOf(year, day), ok
	}},
}

var timeRE = text.LazyRegexp(`^(?:` + strings.Join(append(allDates.rulePatterns(), ruleFile.Exprs("timePart")...), "|") + `)+$`)

var (
	years         = map[string]int{"前年": -2, "去年": -1, "今年": 0, "": 0, "明年": 1, "后年": 2}
	englishOffset = map[string]int{"last": -1, "this": 0, "the": 0, "next": 1}
	months        = map[string]int{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}
	englishCounts = map[string]int{
		"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "couple of": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
		"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
		"eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
		"ninety": 90,
	}
)

func countSteps(which string) int { return strings.Count(which, "下") - strings.Count(which, "上") }

// Number reads figures, an English count under a hundred or a Chinese number under ten thousand, in folded characters.
func Number(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, true
	}
	if n, ok := englishCounts[s]; ok {
		return n, true
	}
	if tens, ones, ok := strings.Cut(strings.ReplaceAll(s, " ", "-"), "-"); ok {
		t, o := englishCounts[tens], englishCounts[ones]
		return t + o, t >= 20 && t%10 == 0 && 1 <= o && o <= 9
	}
	return chineseNumber(s)
}

var chineseUnits = map[rune]int{'十': 10, '百': 100, '千': 1000}

// chineseNumber reads 一百二 as 120.
func chineseNumber(s string) (int, bool) {
	const none = -1
	n, digit, above, zero := 0, none, 10_000, false
	for _, r := range s {
		unit := chineseUnits[r]
		d := strings.IndexRune("一二三四五六七八九", r)
		switch {
		case r == '零' || r == '〇':
			if digit != none {
				return 0, false
			}
			zero = true
		case unit > 0:
			if unit >= above || digit == none && (unit > 10 || n > 0) {
				return 0, false
			}
			n += max(1, digit) * unit
			digit, above, zero = none, unit, false
		case digit != none:
			return 0, false
		case r == '两':
			digit = 2
		case d >= 0:
			digit = d/len("一") + 1
		default:
			return 0, false
		}
	}
	switch {
	case digit == none:
	case n > 0 && above > 10 && !zero:
		n += digit * above / 10
	default:
		n += digit
	}
	return n, s != ""
}

func oneDay(day time.Time) Span { return Span{From: day, To: day.AddDate(0, 0, 1)} }

func shiftDays(s Span, days int) Span {
	return Span{From: s.From.AddDate(0, 0, days), To: s.To.AddDate(0, 0, days)}
}

func mondayOf(day time.Time) time.Time { return day.AddDate(0, 0, -(int(day.Weekday())+6)%7) }

// The day 末 is Saturday and Sunday.
func weekdayIn(monday time.Time, name string) Span {
	if name == "末" {
		return Span{From: monday.AddDate(0, 0, 5), To: monday.AddDate(0, 0, 7)}
	}
	n := strings.Index("一二三四五六日", name) / len("一")
	if name == "天" {
		n = 6
	}
	if name[0] < 'z' {
		n = strings.Index("mo tu we th fr sa su", name[:2]) / 3
	}
	return oneDay(monday.AddDate(0, 0, n))
}

func nextIfPast(s Span, day time.Time) Span {
	if s.To.After(day) {
		return s
	}
	return shiftDays(s, 7)
}

// AddMonths returns the beginning of the same day n months later, or of the last day of a shorter month.
func AddMonths(day time.Time, n int) time.Time {
	first := time.Date(day.Year(), day.Month()+time.Month(n), 1, 0, 0, 0, 0, day.Location())
	return first.AddDate(0, 0, min(day.Day(), first.AddDate(0, 1, -1).Day())-1)
}

// lastDay returns the last day of the months that begin with day's.
func lastDay(day time.Time, count int) Span {
	return oneDay(time.Date(day.Year(), day.Month()+time.Month(count), 0, 0, 0, 0, 0, day.Location()))
}

func monthOf(year, month int, zone time.Time) Span {
	from := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, zone.Location())
	return Span{From: from, To: from.AddDate(0, 1, 0)}
}

func yearOf(year int, zone time.Time) Span {
	from := time.Date(year, 1, 1, 0, 0, 0, 0, zone.Location())
	return Span{From: from, To: from.AddDate(1, 0, 0)}
}

func quarterOf(day time.Time, n int) Span {
	from := time.Date(day.Year(), (day.Month()-1)/3*3+1+time.Month(3*n), 1, 0, 0, 0, 0, day.Location())
	return Span{From: from, To: from.AddDate(0, 3, 0)}
}

func dateOf(year, month int, dayOfMonth string, zone time.Time) (Span, bool) {
	d, ok := Number(dayOfMonth)
	date := time.Date(year, time.Month(month), d, 0, 0, 0, 0, zone.Location())
	return oneDay(date), ok && date.Day() == d && int(date.Month()) == month
}

// A missing year means the last such date.
func lastDate(month int, dayOfMonth, year string, day time.Time) (Span, bool) {
	if n, ok := Number(year); ok {
		return dateOf(n, month, dayOfMonth, day)
	}
	for n := day.Year() + 1; n > day.Year()-8; n-- { // the last 29 February may be that far back
		if span, ok := dateOf(n, month, dayOfMonth, day); ok && !span.From.After(day.AddDate(0, 0, 31)) {
			span.Yearly = true
			return span, true
		}
	}
	return Span{}, false
}

// recentMonth is [lastDate] for a whole month.
func recentMonth(month int, year string, day time.Time) (Span, bool) {
	if month < 1 || month > 12 {
		return Span{}, false
	}
	if n, ok := Number(year); ok {
		return monthOf(n, month, day), true
	}
	span := monthOf(day.Year(), month, day)
	if span.From.After(day.AddDate(0, 0, 31)) {
		span = monthOf(day.Year()-1, month, day)
	}
	span.Yearly = true
	return span, true
}

// spanAhead returns a day, or a year.
func spanAhead(day time.Time, n int, unit string) (Span, bool) {
	switch strings.TrimPrefix(unit, "个") {
	case "天", "day":
		return oneDay(day.AddDate(0, 0, n)), true
	case "周", "星期", "礼拜", "week":
		return oneDay(day.AddDate(0, 0, 7*n)), true
	case "月", "month":
		return oneDay(AddMonths(day, n)), true
	case "年", "year":
		return yearOf(day.Year()+n, day), true
	}
	return Span{}, false
}

// halfSpan reads 半个月 as fifteen days, 半年 as six months, and no other halves.
func halfSpan(unit string, sign int, day time.Time) (Span, bool) {
	switch unit {
	case "个月":
		return oneDay(day.AddDate(0, 0, 15*sign)), true
	case "年":
		return oneDay(AddMonths(day, 6*sign)), true
	}
	return Span{}, false
}
