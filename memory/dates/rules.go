package dates

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/memory/text"
)

// dateRule is one way to write a date. days gets the folded words that its pattern's groups matched, and the reference
// day. It returns false if the words mean no date.
type dateRule struct {
	pattern string
	english bool // in words of which dateWords has a part, and nothing else
	bare    bool // a day of some week, and nothing in the words says of which
	days    func(m []string, day time.Time) (Span, bool)
	re      func() *regexp.Regexp
}

const (
	chineseDigits = "一二两三四五六七八九十"
	chineseNumber = `([0-9０-９]{1,3}|[一二两三四五六七八九十]{1,3}|半)`
	englishNumber = `([0-9]{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a\s+couple\s+of)`
	whichOne      = `(本|这个?|下下个?|下个?|上上个?|上个?)`
	whichMonth    = `(本月|当月|这个?月|下下个?月|下个?月|上上个?月|上个?月)`
	whichYear     = `(今年|明年|去年|前年|后年)`
	dayOfMonth    = `([0-9０-９]{1,2}|[一二三四五六七八九十]{1,3})`
	weekdayName   = `(monday|tuesday|wednesday|thursday|friday|saturday|sunday)`
	weekdayShort  = `(monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tues?|wed|thur?s?|fri|sat|sun)`
	monthNames    = `(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
)

// relativeDates are relative to the day of the text; allDates are dates of any kind. In both the longer words come
// before those that they contain.
var (
	relativeRules = append(chineseRules, allEnglish(englishRules)...)
	relativeDates = newDateGrammar(relativeRules...)
	allDates      = newDateGrammar(append(append([]*dateRule{}, absoluteRules...), relativeRules...)...)
)

// allEnglish marks rules as such.
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
	{pattern: whichYear + dayOfMonth + `月(?:份|` + dayOfMonth + `[号日])?`, days: func(m []string, day time.Time) (Span, bool) {
		month, ok := number(m[2])
		if !ok || m[3] == "" {
			return monthOf(day.Year()+years[m[1]], month, day), ok && 1 <= month && month <= 12
		}
		return dateOf(day.Year()+years[m[1]], month, m[3], day)
	}},
	{pattern: `(?:(今年|明年|去年)年?|年)[底末]`, days: func(m []string, day time.Time) (Span, bool) {
		return dateOf(day.Year()+years[m[1]], 12, "31", day)
	}},
	{pattern: whichYear, days: func(m []string, day time.Time) (Span, bool) {
		return yearOf(day.Year()+years[m[1]], day), true
	}},
	{pattern: whichMonth + dayOfMonth + `[号日]`, days: func(m []string, day time.Time) (Span, bool) {
		month := addMonths(day, offset(m[1]))
		return dateOf(month.Year(), int(month.Month()), m[2], day)
	}},
	{pattern: `(?:` + whichMonth + `月?|月)[底末]`, days: func(m []string, day time.Time) (Span, bool) {
		return lastDay(addMonths(day, offset(m[1])), 1), true
	}},
	{pattern: whichMonth + `初`, days: func(m []string, day time.Time) (Span, bool) {
		month := addMonths(day, offset(m[1]))
		from := monthOf(month.Year(), int(month.Month()), day).From
		return Span{From: from, To: from.AddDate(0, 0, 10)}, true
	}},
	{pattern: whichMonth, days: func(m []string, day time.Time) (Span, bool) {
		month := addMonths(day, offset(m[1]))
		return monthOf(month.Year(), int(month.Month()), day), true
	}},
	{pattern: whichOne + `季度`, days: func(m []string, day time.Time) (Span, bool) { return quarterOf(day, offset(m[1])), true }},
	{pattern: whichOne + `(?:周|星期|礼拜)?的?(?:周|星期|礼拜)([一二三四五六日天末])`, days: func(m []string, day time.Time) (Span, bool) {
		return weekday(monday(day).AddDate(0, 0, 7*offset(m[1])), m[2]), true
	}},
	{pattern: whichOne + `(?:周|星期|礼拜)`, days: func(m []string, day time.Time) (Span, bool) {
		from := monday(day).AddDate(0, 0, 7*offset(m[1]))
		return Span{From: from, To: from.AddDate(0, 0, 7)}, true
	}},
	{pattern: `周([一二三四五六日末])|(?:星期|礼拜)([一二三四五六日天])`, bare: true, days: func(m []string, day time.Time) (Span, bool) {
		return nextIfPast(weekday(monday(day), m[1]+m[2]), day), true
	}},
	{pattern: `大前天|前天|昨[天日晚夜儿]|今[天日晚早晨夜儿]|今明两天|明后两?天|明[天日晚早晨儿]|大?后天`, days: func(m []string, day time.Time) (Span, bool) {
		d, ok := chineseDays[m[0]]
		return Span{From: day.AddDate(0, 0, d[0]), To: day.AddDate(0, 0, d[0]+d[1])}, ok
	}},
	{pattern: chineseNumber + `(天|周|个?星期|个?礼拜|个月|年)(?:之|以)?([前后])`, days: func(m []string, day time.Time) (Span, bool) {
		n := 1
		if m[3] == "前" {
			n = -1
		}
		if m[1] == "半" {
			return half(m[2], n, day)
		}
		count, ok := number(m[1])
		span, known := spanAhead(day, n*count, m[2])
		return span, ok && known
	}},
	{pattern: `再过` + chineseNumber + `(天|周|个?星期|个?礼拜|个月)`, days: func(m []string, day time.Time) (Span, bool) {
		n, ok := number(m[1])
		span, known := spanAhead(day, n, m[2])
		return span, ok && known
	}},
}

var englishRules = []*dateRule{
	{pattern: `\b(?:the\s+)?day\s+(after\s+tomorrow|before\s+yesterday)\b`, days: func(m []string, day time.Time) (Span, bool) {
		if strings.HasPrefix(m[1], "after") {
			return oneDay(day.AddDate(0, 0, 2)), true
		}
		return oneDay(day.AddDate(0, 0, -2)), true
	}},
	{pattern: `\b(?:today|tonight|this\s+morning|this\s+afternoon|this\s+evening)\b`, days: func(_ []string, day time.Time) (Span, bool) {
		return oneDay(day), true
	}},
	{pattern: `\btomorrow\b`, days: func(_ []string, day time.Time) (Span, bool) { return oneDay(day.AddDate(0, 0, 1)), true }},
	{pattern: `\b(?:yesterday|last\s+night)\b`, days: func(_ []string, day time.Time) (Span, bool) { return oneDay(day.AddDate(0, 0, -1)), true }},
	{pattern: `\b(next|last)\s+` + weekdayShort + `\b`, days: func(m []string, day time.Time) (Span, bool) {
		this := weekday(monday(day), m[2])
		if m[1] == "next" {
			return shiftDays(this, 7), true
		}
		if this.From.Before(day) {
			return this, true
		}
		return shiftDays(this, -7), true
	}},
	{pattern: `\b(?:this|this\s+coming|on|by|until|till|before)\s+` + weekdayShort + `\b`, bare: true, days: func(m []string, day time.Time) (Span, bool) {
		return nextIfPast(weekday(monday(day), m[1]), day), true
	}},
	{pattern: `\b` + weekdayName + `\b`, bare: true, days: func(m []string, day time.Time) (Span, bool) {
		return nextIfPast(weekday(monday(day), m[1]), day), true
	}},
	{pattern: `\bin\s+` + englishNumber + `\s+(day|week|month|year)s?\b`, days: func(m []string, day time.Time) (Span, bool) {
		n, ok := number(m[1])
		span, known := spanAhead(day, n, m[2])
		return span, ok && known
	}},
	{pattern: `\b` + englishNumber + `\s+(day|week|month|year)s?\s+(ago|from\s+now)\b`, days: func(m []string, day time.Time) (Span, bool) {
		n, ok := number(m[1])
		if m[3] == "ago" {
			n = -n
		}
		span, known := spanAhead(day, n, m[2])
		return span, ok && known
	}},
	{pattern: `\b(?:the\s+)?end\s+of\s+(the|this|next|last)\s+(month|quarter|year)\b`, days: func(m []string, day time.Time) (Span, bool) {
		switch n := englishOffset[m[1]]; m[2] {
		case "month":
			return lastDay(addMonths(day, n), 1), true
		case "quarter":
			return oneDay(quarterOf(day, n).To.AddDate(0, 0, -1)), true
		default:
			return dateOf(day.Year()+n, 12, "31", day)
		}
	}},
	{pattern: `\b(this|next|last)\s+(week|weekend|month|quarter|year)\b`, days: func(m []string, day time.Time) (Span, bool) {
		n := englishOffset[m[1]]
		week := monday(day).AddDate(0, 0, 7*n)
		switch m[2] {
		case "week":
			return Span{From: week, To: week.AddDate(0, 0, 7)}, true
		case "weekend":
			return weekday(week, "末"), true
		case "month":
			month := addMonths(day, n)
			return monthOf(month.Year(), int(month.Month()), day), true
		case "quarter":
			return quarterOf(day, n), true
		default:
			return yearOf(day.Year()+n, day), true
		}
	}},
}

// absoluteRules are for questions only: a fact keeps the date that it names. Without a year the last such date is
// meant, or the next one if that is at most a month ahead.
var absoluteRules = []*dateRule{
	{pattern: `([0-9]{4})(?:-|/|\.| ?年 ?)([0-9]{1,2})(?:-|/|\.| ?月 ?)([0-9]{1,2})(?: ?[日号])?`, days: func(m []string, day time.Time) (Span, bool) {
		year, _ := number(m[1])
		month, _ := number(m[2])
		return dateOf(year, month, m[3], day)
	}},
	{pattern: `([0-9]{4})(?: ?年 ?|-)([0-9]{1,2})(?: ?月)?`, days: func(m []string, day time.Time) (Span, bool) {
		year, _ := number(m[1])
		month, _ := number(m[2])
		return monthOf(year, month, day), 1 <= month && month <= 12
	}},
	{pattern: dayOfMonth + ` ?月 ?` + dayOfMonth + `(?: ?[日号])?|\b([0-9]{1,2})/([0-9]{1,2})\b`, days: func(m []string, day time.Time) (Span, bool) {
		month, _ := number(m[1] + m[3])
		return lastDate(month, m[2]+m[4], "", day)
	}},
	{pattern: dayOfMonth + ` ?月份?`, days: func(m []string, day time.Time) (Span, bool) {
		month, _ := number(m[1])
		return recentMonth(month, "", day)
	}},
	{pattern: dayOfMonth + ` ?号`, days: func(m []string, day time.Time) (Span, bool) {
		span, ok := dateOf(day.Year(), int(day.Month()), m[1], day)
		if ok && !span.From.After(day.AddDate(0, 0, 7)) {
			return span, true
		}
		before := addMonths(day, -1)
		return dateOf(before.Year(), int(before.Month()), m[1], day)
	}},
	{pattern: `(?:前几|这几|前两|这两|前些)天|\bthe\s+other\s+day\b|\b(?:a\s+)?few\s+days\s+ago\b`, days: func(_ []string, day time.Time) (Span, bool) {
		return Span{From: day.AddDate(0, 0, -7), To: day.AddDate(0, 0, 1)}, true
	}},
	{english: true, pattern: `\b(` + monthNames + `)\.?\s+([0-9]{1,2})(?:st|nd|rd|th)?\b(?:,?\s+([0-9]{4})\b)?`, days: func(m []string, day time.Time) (Span, bool) {
		return lastDate(months[m[1][:3]], m[2], m[3], day)
	}},
	{english: true, pattern: `\b([0-9]{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?(` + monthNames + `)\b(?:,?\s+([0-9]{4})\b)?`, days: func(m []string, day time.Time) (Span, bool) {
		return lastDate(months[m[2][:3]], m[1], m[3], day)
	}},
	{english: true, pattern: `\b(` + monthNames + `),?\s+([0-9]{4})\b`, days: func(m []string, day time.Time) (Span, bool) {
		return recentMonth(months[m[1][:3]], m[2], day)
	}},
	// "may" and "march" alone are words of every day.
	{english: true, pattern: `\b(?:in|since|during|last|of|by|before|after|until|for|early|late|mid)[\s-]+(` + monthNames + `)\b(?:,?\s+([0-9]{4})\b)?`, days: func(m []string, day time.Time) (Span, bool) {
		return recentMonth(months[m[1][:3]], m[2], day)
	}},
	{english: true, pattern: `\b(january|february|april|june|july|august|september|october|november|december)\b`, days: func(m []string, day time.Time) (Span, bool) {
		return recentMonth(months[m[1][:3]], "", day)
	}},
	{pattern: `\b(?:in|since|during)\s+((?:19|20)[0-9]{2})\b|((?:19|20)[0-9]{2}) ?年`, days: func(m []string, day time.Time) (Span, bool) {
		year, ok := number(m[1] + m[2])
		return yearOf(year, day), ok
	}},
}

// timeParts are the words of a time besides the dates of the rules: parts of a month, of a week and of the day, hours,
// holidays, connectives.
var timeParts = []string{
	`[(（]?\d{4}-\d{2}(?:-\d{2})?[)）]?|\d{4} ?年`,
	dayOfMonth + ` ?(?:月(?:底|初|中旬?|上旬|下旬)|[日号])|(?:本|这个?|下个?)月中|[月年]初`,
	`每?(?:周|星期|礼拜)[一二三四五六日天末]?|节[前后]|(?:国庆|春节|五一|元旦)(?:节?[前后])?`,
	`凌晨|早上|早晨|上午|中午|下午|傍晚|晚上|晚`,
	`(?:\d{1,2}|[一二两三四五六七八九十]{1,3}) ?点(?:半|钟|整|[一三]刻|\d{1,2}分?|[一二三四五六七八九十]{1,3}分)?`,
	`\d{1,2}:\d{2}(?: ?[ap]m)?|\d{1,2} ?[ap]m`,
	`\b(?:` + weekdayShort + `|` + monthNames + `|noon|midnight|morning|afternoon|evening|week|weekend|month|quarter|year)s?\b`,
	`\b(?:next|this|the|on|at|of|in|to|early|late|end|mid|after|day|and)\b|\d{1,2}(?:st|nd|rd|th)\b|q[1-4]\b`,
	`[ ,、()~.-]|到|至|的|之?间|开始|进行|举行|召开`,
}

var timeRE = text.LazyRegexp(`^(?:` + strings.Join(append(allDates.patterns(), timeParts...), "|") + `)+$`)

var (
	years         = map[string]int{"前年": -2, "去年": -1, "今年": 0, "": 0, "明年": 1, "后年": 2}
	englishOffset = map[string]int{"last": -1, "this": 0, "the": 0, "next": 1}
	months        = map[string]int{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}
	englishCounts = map[string]int{
		"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
		"ten": 10, "eleven": 11, "twelve": 12,
	}
)

// offset reads 上, 本 and 下 as steps, one for each.
func offset(which string) int { return strings.Count(which, "下") - strings.Count(which, "上") }

// number reads figures, an English count or a Chinese number under a hundred.
func number(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, true
	}
	if n, ok := englishCounts[s]; ok {
		return n, true
	}
	n, tens := 0, false
	for i, r := range []rune(s) {
		switch digit := strings.IndexRune("一二三四五六七八九", r); {
		case r == '十' && !tens:
			n, tens = max(1, n)*10, true
		case r == '两' && i == 0:
			n = 2
		case digit >= 0 && (i == 0 || tens && n%10 == 0):
			n += digit/len("一") + 1
		default:
			return 0, false
		}
	}
	return n, s != ""
}

func oneDay(day time.Time) Span { return Span{From: day, To: day.AddDate(0, 0, 1)} }

func shiftDays(s Span, days int) Span {
	return Span{From: s.From.AddDate(0, 0, days), To: s.To.AddDate(0, 0, days)}
}

// monday returns the first day of day's week.
func monday(day time.Time) time.Time { return day.AddDate(0, 0, -(int(day.Weekday())+6)%7) }

// weekday returns a named day of the week that begins on monday; 末 is its Saturday and Sunday.
func weekday(monday time.Time, name string) Span {
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

// nextIfPast moves a past span of this week to the next one.
func nextIfPast(s Span, day time.Time) Span {
	if s.To.After(day) {
		return s
	}
	return shiftDays(s, 7)
}

// addMonths returns the same day of the month n months away, or the last day of that month if it is shorter.
func addMonths(day time.Time, n int) time.Time {
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

// dateOf returns a day of the calendar; false if it does not exist.
func dateOf(year, month int, dayOfMonth string, zone time.Time) (Span, bool) {
	d, ok := number(dayOfMonth)
	date := time.Date(year, time.Month(month), d, 0, 0, 0, 0, zone.Location())
	return oneDay(date), ok && date.Day() == d && int(date.Month()) == month
}

// lastDate returns a day of the calendar. Without a year it is the last one.
func lastDate(month int, dayOfMonth, year string, day time.Time) (Span, bool) {
	if n, ok := number(year); ok {
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
	if n, ok := number(year); ok {
		return monthOf(n, month, day), true
	}
	span := monthOf(day.Year(), month, day)
	if span.From.After(day.AddDate(0, 0, 31)) {
		span = monthOf(day.Year()-1, month, day)
	}
	span.Yearly = true
	return span, true
}

// spanAhead returns the day, or for years the year, that is n units away.
func spanAhead(day time.Time, n int, unit string) (Span, bool) {
	switch strings.TrimPrefix(unit, "个") {
	case "天", "day":
		return oneDay(day.AddDate(0, 0, n)), true
	case "周", "星期", "礼拜", "week":
		return oneDay(day.AddDate(0, 0, 7*n)), true
	case "月", "month":
		return oneDay(addMonths(day, n)), true
	case "年", "year":
		return yearOf(day.Year()+n, day), true
	}
	return Span{}, false
}

// half reads 半个月 as fifteen days and 半年 as six months; half of anything else is no date.
func half(unit string, sign int, day time.Time) (Span, bool) {
	switch unit {
	case "个月":
		return oneDay(day.AddDate(0, 0, 15*sign)), true
	case "年":
		return oneDay(addMonths(day, 6*sign)), true
	}
	return Span{}, false
}
