package dates

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ebb/memory/text"
	"ebb/sessions/rules"
)

// Span is a stretch of whole days in one zone, To excluded.
type Span struct {
	From, To time.Time
	Yearly   bool // a day or month without a year: From is the likeliest one
}

// Holds reports whether a time is in a span or, if it is yearly, in its days of another year.
func (s Span) Holds(t time.Time) bool {
	if !s.Yearly {
		return !t.Before(s.From) && t.Before(s.To)
	}
	t = t.In(s.From.Location())
	return t.Month() == s.From.Month() && (t.Day() == s.From.Day() || !s.OneDay())
}

// OneDay reports whether a span is a single day.
func (s Span) OneDay() bool { return s.From.AddDate(0, 0, 1).Equal(s.To) }

// Resolve adds the date in brackets behind each relative date of a text, counted from said in its zone: "明天" becomes
// "明天（2026-11-22）". A week, month or year gets its span or number. Weeks begin on Monday. A zero said changes nothing.
//
// Text with a date in brackets stays, so that a second call changes nothing. Recurring days ("每周五", "周一到周五") mean no
// date. A day of the week is the next one, today included, or the last one next to the past tense.
func Resolve(body string, said time.Time) string {
	if said.IsZero() {
		return body
	}
	var b strings.Builder
	at := 0
	for _, m := range relativeDates.findMentions(body, startOfDay(said), false) {
		b.WriteString(body[at:m.end])
		b.WriteString(formatSpan(m.Span, text.HasHan(body[m.at:m.end])))
		at = m.end
	}
	if at == 0 {
		return body
	}
	b.WriteString(body[at:])
	return b.String()
}

// Find returns the days that a question means, in its order and in now's zone: relative dates as in [Resolve], dates
// in figures and with names of months. Questions look back: a day of the week is the last one, today included, and a
// date without a year at most a month ahead. A long text is searched only at its beginning and end.
func Find(query string, now time.Time) []Span {
	var spans []Span
	for _, m := range allDates.findMentions(text.Clip(query), startOfDay(now), true) {
		spans = append(spans, m.Span)
	}
	return spans
}

type dateMention struct {
	Span

	at, end int
	rule    *dateRule
}

// dateGrammar finds all matches in one pass, and tries each rule on few words.
type dateGrammar struct {
	re    func() *regexp.Regexp
	short func() *regexp.Regexp // enough for texts without dateWords
	rules []*dateRule
}

func newDateGrammar(list ...*dateRule) dateGrammar {
	var patterns, short []string
	for _, r := range list {
		r.pattern = rules.Union(ruleFile.Exprs(r.name))
		patterns = append(patterns, r.pattern)
		if !r.english {
			short = append(short, r.pattern)
		}
		r.re = text.LazyRegexp("^(?:" + "(?i)" + r.pattern + ")$")
	}
	return dateGrammar{
		text.LazyRegexp("(?i)" + strings.Join(patterns, "|")), text.LazyRegexp("(?i)" + strings.Join(short, "|")), list,
	}
}

func (g dateGrammar) rulePatterns() []string {
	var list []string
	for _, r := range g.rules {
		list = append(list, r.pattern)
	}
	return list
}

func (g dateGrammar) findPlaces(text string) [][]int {
	if !hasDateWord(text) {
		return g.short().FindAllStringIndex(text, -1)
	}
	return g.re().FindAllStringIndex(text, -1)
}

// With back, a day of the week is past unless the text says otherwise, and adjacent dates count each.
func (g dateGrammar) findMentions(text string, day time.Time, back bool) []dateMention {
	if !mayDate(text) {
		return nil
	}
	return g.readMentions(text, g.findPlaces(text), day, back)
}

// readMentions resolves each place. A bare weekday is of the coming week, unless the sentence speaks of the past or of a habit; a
// clause says that for all its days.
func (g dateGrammar) readMentions(text string, places [][]int, day time.Time, back bool) []dateMention {
	var found []dateMention
	var in clause
	last := -1
	for _, at := range places {
		m := dateMention{at: at[0], end: at[1]}
		adjacent := last == m.at
		last = m.end
		if !adjacent && insideWord(text, m.at, m.end) || !back && isDated(text, m.at, m.end) {
			continue
		}
		if !g.resolveSpan(&m, text[m.at:m.end], day) {
			continue
		}
		if m.rule.bare {
			in = in.advanceTo(text, m.at)
			if in.habit || isRange(text, m.at, m.end) {
				continue
			}
			past := back && !in.ahead || !back && isInPast(text, m.at, m.end)
			if past && m.From.After(day) {
				m.From, m.To = m.From.AddDate(0, 0, -7), m.To.AddDate(0, 0, -7)
			}
		}
		found = append(found, m)
	}
	return found
}

// addedRE also matches codes of these forms.
var addedRE = text.LazyRegexp(`\s*[(（]([0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?: (?:至|to) [0-9]{4}-[0-9]{2}-[0-9]{2})?)?)?)[)）]`)

// Strip removes the dates that [Resolve] would add again, and no codes in brackets.
func Strip(resolved string) string {
	var b strings.Builder
	done := 0
	for _, at := range addedRE().FindAllStringSubmatchIndex(resolved, -1) {
		b.WriteString(resolved[done:at[0]])
		if done = at[1]; !addsBetween(b.String(), resolved[at[2]:at[3]], resolved[done:]) {
			b.WriteString(resolved[at[0]:done])
		}
	}
	b.WriteString(resolved[done:])
	return b.String()
}

// addsBetween reports whether [Resolve] adds a date of this form between two parts, on any day.
func addsBetween(before, date, behind string) bool {
	const window = 256
	if len(before) > window {
		before = strings.ToValidUTF8(before[len(before)-window:], "")
	}
	around := before + behind[:min(len(behind), window)]
	if !mayDate(around) {
		return false
	}
	places := relativeDates.findPlaces(around)
	if !slices.ContainsFunc(places, func(at []int) bool { return at[1] == len(before) }) {
		return false
	}
	for _, day := range sampleDays {
		for _, m := range relativeDates.readMentions(around, places, day, false) {
			if m.end == len(before) {
				return len(writeSpan(m.Span, " to ")) == len(strings.Replace(date, "至", "to", 1)) // each form has its length
			}
		}
	}
	return false
}

// Each relative date has a day here on which it exists: "明年2月29日", "上个月31号".
var sampleDays = func() (days []time.Time) {
	for year := 2022; year <= 2026; year++ { // 2024 is the leap year
		days = append(days, time.Date(year, 1, 15, 0, 0, 0, 0, time.UTC), time.Date(year, 12, 15, 0, 0, 0, 0, time.UTC))
	}
	return days
}()

// mayDate is a cheap test before the expressions, which cost far more.
func mayDate(text string) bool {
	if strings.ContainsAny(text, dateCharacters) {
		return true
	}
	figures := strings.ContainsAny(text, "0123456789")
	if figures && strings.ContainsAny(text, "/-.") {
		return true
	}
	return figures && strings.Contains(strings.ToLower(text), "in") || // "in 2024", "during 2024", "since 2024"
		hasDateWord(text)
}

func hasDateWord(text string) bool {
	low := strings.ToLower(text)
	return slices.ContainsFunc(dateWords, func(w string) bool { return strings.Contains(low, w) })
}

const dateCharacters = "年月周天日号晚早晨夜儿期拜季"

// dateWords are in every English date without a figure.
var dateWords = strings.Fields("day week month quarter year tomorrow tonight night morning afternoon evening mon tue wed thu fri sat sun " +
	"jan feb mar apr may jun jul aug sep oct nov dec")

func (g dateGrammar) resolveSpan(m *dateMention, words string, day time.Time) bool {
	words = text.Canonical(words)
	for _, r := range g.rules {
		if parts := r.re().FindStringSubmatch(words); parts != nil {
			span, ok := r.days(parts, day)
			m.Span, m.rule = span, r
			return ok
		}
	}
	return false
}

func formatSpan(s Span, chinese bool) string {
	if chinese {
		return "（" + writeSpan(s, " 至 ") + "）"
	}
	return " (" + writeSpan(s, " to ") + ")"
}

func writeSpan(s Span, to string) string {
	last := s.To.AddDate(0, 0, -1)
	switch {
	case last.Equal(s.From):
		return s.From.Format(time.DateOnly)
	case s.From.Day() == 1 && s.From.AddDate(0, 1, 0).Equal(s.To):
		return s.From.Format("2006-01")
	case s.From.YearDay() == 1 && s.From.AddDate(1, 0, 0).Equal(s.To):
		return s.From.Format("2006")
	}
	return s.From.Format(time.DateOnly) + to + last.Format(time.DateOnly)
}

type clause struct {
	from, to int
	habit    bool // it speaks of a recurring event
	ahead    bool // it speaks of the future
}

// advanceTo returns the clause around an offset at or behind it.
func (c clause) advanceTo(text string, offset int) clause {
	if c.to > offset {
		return c
	}
	for c.to <= offset {
		c.from = c.to
		n := strings.IndexAny(text[c.from:], "。；;！!？?\n")
		if n < 0 {
			c.to = len(text)
			break
		}
		_, size := utf8.DecodeRuneInString(text[c.from+n:])
		c.to = c.from + n + size
	}
	c.habit = habitRE().MatchString(text[c.from:c.to])
	c.ahead = willBeRE().MatchString(text[c.from:c.to])
	return c
}

var (
	habitRE  = ruleFile.Regexp("habit")
	willBeRE = ruleFile.Regexp("willBe")

	dateBeforeRE  = ruleFile.Regexp("dateBefore")
	dateBehindRE  = ruleFile.Regexp("dateBehind")
	rangeBeforeRE = ruleFile.Regexp("rangeBefore")
	rangeBehindRE = ruleFile.Regexp("rangeBehind")

	pastBeforeRE        = ruleFile.Regexp("pastBefore")
	pastBehindRE        = ruleFile.Regexp("pastBehind")
	pastBehindChineseRE = ruleFile.Regexp("pastBehindChinese")
)

func isInPast(text string, at, end int) bool {
	const window = 60
	before, behind := text[max(0, at-window):at], text[end:min(len(text), end+window)]
	return pastBeforeRE().MatchString(before) || pastBehindRE().MatchString(behind) || pastBehindChineseRE().MatchString(behind)
}

func isDated(text string, at, end int) bool {
	const window = 40
	return dateBeforeRE().MatchString(text[max(0, at-window):at]) || dateBehindRE().MatchString(text[end:min(len(text), end+window)])
}

// "周一到周五" mostly means every week.
func isRange(text string, at, end int) bool {
	const window = 24
	return rangeBeforeRE().MatchString(text[max(0, at-window):at]) || rangeBehindRE().MatchString(text[end:min(len(text), end+window)])
}

// lookAlikes are no dates next to these characters: Chinese has no blanks, and "说明天气情况" contains "明天".
var lookAlikes = []struct{ first, last, before, behind string }{
	{first: "明", before: "光文声说聪透表证黎照注英简鲜严申查阐标写"},
	{first: "后天", before: "先以之今最午雨饭然天", behind: "性赋"},
	{first: "前天", before: "以之从先午饭", behind: "性"},
	{first: "去年", before: "过失逝离"},
	{first: "前年", before: "以之从"},
	{first: "后年", before: "以之今最", behind: "级"},
	{first: "本", before: "日基根成版文样书剧资"},
	{first: "上周", before: "身以"},
	{first: "今日", behind: "头"},
	{last: "周", behind: "期围转边刊岁"},
	{last: "前", behind: "端台缀缘言"},
	{last: "后", behind: "端台缀勤面"},
	{last: "号", behind: "楼线机店库院柜门位服桌桩仓区栋层窗车房井泵炉厅"},
	{first: "周", before: "一二三四五六七八九十两几半每隔单双逢个0123456789０１２３４５６７８９"},
	{first: "星期", before: "每逢个"},
	{first: "礼拜", before: "每逢个"},
	{first: "年", before: "〇零一二三四五六七八九每0123456789０１２３４５６７８９"},
	{first: "月", before: "一二三四五六七八九十每个0123456789０１２３４５６７８９"},
}

// A longer number counts as a word.
func insideWord(text string, at, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	behind, _ := utf8.DecodeRuneInString(text[end:])
	first, _ := utf8.DecodeRuneInString(text[at:])
	if (unicode.IsDigit(first) || strings.ContainsRune(chineseDigits, first)) && at > 0 &&
		(unicode.IsDigit(before) || strings.ContainsRune("第.."+chineseDigits, before)) {
		return true
	}
	word := text[at:end]
	if last, _ := utf8.DecodeLastRuneInString(word); unicode.IsLetter(last) && domainRE().MatchString(text[end:]) {
		return true
	}
	if strings.HasSuffix(word, "号") && strings.HasPrefix(text[end:], "会议室") {
		return true
	}
	for _, l := range lookAlikes {
		if !strings.HasPrefix(word, l.first) || !strings.HasSuffix(word, l.last) {
			continue
		}
		if at > 0 && strings.ContainsRune(l.before, before) || end < len(text) && strings.ContainsRune(l.behind, behind) {
			return true
		}
	}
	return false
}

// domainRE matches the rest of "monday.com" behind "monday".
var domainRE = ruleFile.Regexp("domain")

// IsTime reports whether a folded text has only dates, hours, parts of the day, and their connectives.
func IsTime(folded string) bool { return timeRE().MatchString(folded) }

// The index can't afford the grammar for each message.
var timeWords = strings.Fields(`yesterday today tonight tomorrow last next ago since week weeks weekend month months year years
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
november december recently summer winter spring fall morning evening
昨 今天 明天 今年 去年 前天 上周 下周 上月 上个月 下月 下个月 星期 周一 周二 周三 周四 周五 周六 周日 周末 最近 刚刚`)

// HasTimeWord reports a word of time, a date in figures or a year in a folded text, cheaply and coarsely.
func HasTimeWord(folded string) bool {
	digits := 0
	for _, r := range folded {
		switch {
		case r >= '0' && r <= '9':
			digits++
			continue
		case digits == 4 && !text.IsWordRune(r), digits > 0 && strings.ContainsRune("年月日号点", r):
			return true
		}
		digits = 0
	}
	return digits == 4 || slices.ContainsFunc(timeWords, func(w string) bool { return text.ContainsWord(folded, w) })
}

func startOfDay(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

// Mentions reports whether a text has the form of a date in it.
func Mentions(text string) bool { return mayDate(text) && len(allDates.findPlaces(text)) > 0 }

// NamesPast reports a past day, or a date in figures or with its month. Without a clock those may be past; a search
// for them does no harm.
func NamesPast(text string) bool { return mayDate(withoutPresent.Replace(text)) && namesPast(text) }

// withoutPresent takes out the most frequent words for a day, none of which is past: many questions have no other date.
var withoutPresent = strings.NewReplacer("今天", "", "今日", "", "明天", "", "明日", "", "后天", "")

func namesPast(text string) bool {
	day := time.Date(2000, 6, 14, 0, 0, 0, 0, time.UTC) // a Wednesday: any day separates before from after
	if places := relativeDates.findPlaces(text); len(places) > 0 {
		for _, m := range relativeDates.readMentions(text, places, day, true) {
			if m.From.Before(day) && !m.To.After(day) {
				return true
			}
		}
		return false
	}
	return len(allDates.findMentions(text, day, true)) > 0
}
