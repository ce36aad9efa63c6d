package rank

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// span is a time that a query names: a day or a month of the calendar, or the time between two instants.
type span struct {
	year, month, day int // 0: any
	from, to         time.Time
	factor           float64
}

// dated is how much the time of a text speaks for it.
func (q Query) dated(at time.Time) float64 {
	f := 1.0
	for _, s := range q.dates {
		if s.holds(at.In(q.now.Location())) {
			f = max(f, s.factor)
		}
	}
	return f
}

// Span is the first time that the query names: of a day without a year the last such day.
func (q Query) Span() (from, to time.Time, ok bool) {
	if len(q.dates) == 0 {
		return time.Time{}, time.Time{}, false
	}
	s := q.dates[0]
	if !s.from.IsZero() {
		return s.from, s.to, true
	}
	year, day := cmp.Or(s.year, q.now.Year()), max(s.day, 1)
	from = time.Date(year, time.Month(s.month), day, 0, 0, 0, 0, q.now.Location())
	if s.year == 0 && from.After(q.now) {
		from = from.AddDate(-1, 0, 0)
	}
	if s.day == 0 {
		return from, from.AddDate(0, 1, 0), true
	}
	return from, from.AddDate(0, 0, 1), true
}

func (s span) holds(t time.Time) bool {
	if !s.from.IsZero() {
		return !t.Before(s.from) && t.Before(s.to)
	}
	return (s.year == 0 || t.Year() == s.year) && (s.month == 0 || int(t.Month()) == s.month) && (s.day == 0 || t.Day() == s.day)
}

var months = map[string]int{
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}

const monthNames = `(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|tember|ober|ember)?`

var (
	isoDate   = regexp.MustCompile(`\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b`)
	zhDate    = regexp.MustCompile(`(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})(?:日|号)?)?`)
	monthDay  = regexp.MustCompile(`\b` + monthNames + `\.? (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (\d{4}))?`)
	dayMonth  = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)? (?:of )?` + monthNames + `\b(?:,? (\d{4}))?`)
	monthOnly = regexp.MustCompile(`\b(?:in|of|during|by|since|last|this|early|late|mid|before|after|until|for) ` + monthNames + `\b(?:,? (\d{4}))?`)
)

const (
	dayFactor   = 3
	monthFactor = 1.7
)

func datesOf(text string, now time.Time) []span {
	var spans []span
	num := func(s string) int { n, _ := strconv.Atoi(s); return n } // digits only, or nothing
	month := func(s string) int { return months[s[:3]] }
	add := func(y, m, d int) {
		f := float64(dayFactor)
		if d == 0 {
			f = monthFactor
		}
		if m >= 1 && m <= 12 && d <= 31 {
			spans = append(spans, span{year: y, month: m, day: d, factor: f})
		}
	}
	for _, m := range isoDate.FindAllStringSubmatch(text, -1) {
		add(num(m[1]), num(m[2]), num(m[3]))
	}
	for _, m := range zhDate.FindAllStringSubmatch(text, -1) {
		add(num(m[1]), num(m[2]), num(m[3]))
	}
	for _, m := range monthDay.FindAllStringSubmatch(text, -1) {
		add(num(m[3]), month(m[1]), num(m[2]))
	}
	for _, m := range dayMonth.FindAllStringSubmatch(text, -1) {
		add(num(m[3]), month(m[2]), num(m[1]))
	}
	if len(spans) == 0 {
		for _, m := range monthOnly.FindAllStringSubmatch(text, -1) {
			add(num(m[2]), month(m[1]), 0)
		}
	}
	return append(spans, relativeSpans(text, now)...)
}

// relativeSpans reads spans that are relative to today: yesterday, last week.
func relativeSpans(text string, now time.Time) []span {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	monday := today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
	first := today.AddDate(0, 0, 1-today.Day())
	var spans []span
	for _, r := range []struct {
		words    string
		from, to time.Time
		factor   float64
	}{
		{"yesterday 昨天 昨日 昨晚", today.AddDate(0, 0, -1), today, dayFactor},
		{"前天", today.AddDate(0, 0, -2), today.AddDate(0, 0, -1), dayFactor},
		{"today 今天 今早", today, today.AddDate(0, 0, 1), dayFactor},
		{"last\u00a0week 上周 上星期 上礼拜", monday.AddDate(0, 0, -7), monday, monthFactor},
		{"this\u00a0week 这周 本周 这星期 这个星期", monday, monday.AddDate(0, 0, 7), monthFactor},
		{"last\u00a0month 上个月 上月", first.AddDate(0, -1, 0), first, monthFactor},
		{"this\u00a0month 这个月 本月", first, first.AddDate(0, 1, 0), monthFactor},
	} {
		for w := range strings.SplitSeq(r.words, " ") {
			if contains(text, strings.ReplaceAll(w, "\u00a0", " ")) {
				spans = append(spans, span{from: r.from, to: r.to, factor: r.factor})
				break
			}
		}
	}
	return spans
}
