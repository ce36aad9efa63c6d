package dates

import (
	"strings"
	"time"

	"ebb/memory/text"
	"ebb/sessions/rules"
)

// Mention is a date at the beginning of a text.
type Mention struct {
	Span

	Words  string // the words of the text
	Recurs bool   // a day of some week, month or year: the first one that is not past
}

// aheadRules are forms that mean a date in an appointment only, and another thing in most texts: "the 3rd", "Fri".
var aheadRules = []*dateRule{
	{name: "monthEndWithoutYear", next: true, days: func(m []string, day time.Time) (Span, bool) {
		month, _ := Number(m[1])
		end := lastDay(monthOf(day.Year(), month, day).From, 1)
		if !end.To.After(day) {
			end = lastDay(monthOf(day.Year()+1, month, day).From, 1)
		}
		return end, 1 <= month && month <= 12
	}},
	{name: "monthLastDay", days: func(m []string, day time.Time) (Span, bool) {
		return lastDay(AddMonths(day, countSteps(m[1])), 1), true
	}},
	{name: "dayInChinese", next: true, days: nextDayOfMonth},
	{name: "englishDayOfMonth", next: true, days: nextDayOfMonth},
	{name: "englishShortWeekday", next: true, days: func(m []string, day time.Time) (Span, bool) {
		return nextIfPast(weekdayIn(mondayOf(day), m[1]), day), true
	}},
}

var (
	aheadDates = func() dateGrammar {
		first, rest := aheadRules[:2], aheadRules[2:] // longer than others that begin like them
		all := append(append([]*dateRule{}, first...), absoluteRules...)
		return newDateGrammar(append(append(all, relativeRules...), rest...)...)
	}()
	onRE    = ruleFile.Regexp("on")
	aheadRE = text.LazyRegexp("^(?:(?i)" + rules.Union(aheadDates.rulePatterns()) + ")")
)

// Ahead reads the date at the beginning of a folded text as a day of an appointment, in now's zone. A date without a year,
// month or week is the first one from now's day on. Only words such as "yesterday" or a full date mean a past day.
func Ahead(folded string, now time.Time) (Mention, bool) {
	at := aheadRE().FindStringIndex(folded)
	if on := onRE().FindString(folded); on != "" {
		if behind := aheadRE().FindStringIndex(folded[len(on):]); behind != nil && (at == nil || len(on)+behind[1] > at[1]) {
			m, ok := ahead(folded[len(on):], behind[1], now)
			m.Words = on + m.Words
			return m, ok
		}
	}
	if at == nil {
		return Mention{}, false
	}
	return ahead(folded, at[1], now)
}

func ahead(folded string, end int, now time.Time) (Mention, bool) {
	if insideWord(folded, 0, end) || strings.HasPrefix(folded[end:], "'s ") {
		return Mention{}, false
	}
	day := startOfDay(now)
	m := dateMention{end: end}
	if !aheadDates.resolveSpan(&m, folded[:end], day) {
		return Mention{}, false
	}
	found := Mention{Span: m.Span, Words: folded[:end], Recurs: m.rule.bare || m.rule.next || m.rule.monthly || m.Yearly}
	ok := true
	switch {
	case m.rule.monthly:
		found.Span, ok = firstFrom(day, 1, m.Span)
	case m.Yearly:
		found.Span, ok = firstFrom(day, 12, m.Span)
	}
	found.Yearly = m.Yearly
	return found, ok
}

// The month must have the day.
func nextDayOfMonth(m []string, day time.Time) (Span, bool) {
	n, ok := Number(m[1])
	january := monthOf(day.Year(), 1, day).From
	span, found := firstFrom(day, 1, oneDay(january.AddDate(0, 0, n-1)))
	return span, ok && found && 1 <= n && n <= 31
}

// firstFrom moves a day or a month by steps of months to the first one that ends after the beginning of day.
func firstFrom(day time.Time, step int, s Span) (Span, bool) {
	years := day.Year() - s.From.Year() - 1
	for n := 12 * years; n <= 12*(years+10); n += step { // a 29 February may be eight years away
		month := time.Date(s.From.Year(), s.From.Month()+time.Month(n), 1, 0, 0, 0, 0, day.Location())
		next := oneDay(month.AddDate(0, 0, s.From.Day()-1))
		if !s.OneDay() {
			next.To = month.AddDate(0, 1, 0)
		}
		if next.From.Month() == month.Month() && next.To.After(day) {
			return next, true
		}
	}
	return Span{}, false
}
