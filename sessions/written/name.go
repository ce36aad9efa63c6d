package written

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// variants are a name with the brackets that Chinese models write, and with a blank before them.
func variants(name string) []string {
	at := strings.LastIndexByte(name, '(')
	if at < 0 || !strings.HasSuffix(name, ")") {
		return nil
	}
	nick, id := name[:at], name[at+1:len(name)-1]
	if nick == "" {
		return nil
	}
	return []string{"[" + name + "]", nick + "（" + id + "）", nick + " (" + id + ")", nick + " （" + id + "）"}
}

var plainName = strings.NewReplacer(" （", "(", "（", "(", " (", "(", "）", ")")

var (
	clock     = regexp.MustCompile(`^\[(?:\d{4}-\d\d-\d\d )?\d\d:\d\d(?: [^\]\n]{1,160})?\]`)
	fullClock = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d [A-Z][a-z]+ [^\]\n]{1,160}\]`)
	halfClock = regexp.MustCompile(`^\[(?:\d{0,4}|\d{4}-[\d-]{0,5}|\d{4}-\d\d-\d\d [\d:]{0,5}|[\d:]{0,5}|(?:\d{4}-\d\d-\d\d )?\d\d:\d\d [^\]\n]{0,160})$`)
	quoteLead = regexp.MustCompile(`^\[引用 [^\n:：]{1,100}: [^\n]*\]\n`)
	roleAlone = regexp.MustCompile(`^(?i:assistant)[ \t]*\r?\n\r?\n`)
	halfAlone = regexp.MustCompile(`^(?i:assistant)[ \t]*\r?(?:\n\r?)?$`)
	halfQuote = regexp.MustCompile(`^\[(?:引(?:用(?: [^\n]*)?)?)?$`)
)

// head removes what a request shows before an answer: names, times and quotes. Lines that all have names are content.
func (f *Filter) head(final bool) (n int, decided bool) {
	s := f.buf
	if blank := len(s) - len(strings.TrimLeft(s, " \t\r\n")); blank > 0 {
		if f.lead != "" {
			f.lead += lead(s[:blank])
		}
		return blank, false
	}
	if !f.text {
		if n, is, wait := f.wholeCall(final); is || wait {
			return n, false
		}
		f.text = true
	}
	if !final && (halfClock.MatchString(s) || halfQuote.MatchString(s)) {
		return 0, false
	}
	if m := quoteLead.FindString(s); m != "" {
		f.note(Labelled)
		return len(m), false
	}
	if n := len(clock.FindString(s)); n > 0 {
		cut, decided := f.headLine(n, final, func(below string) (same, wait bool) {
			return clock.MatchString(below), below == "" || halfClock.MatchString(below)
		})
		f.lead += lead(s[:cut])
		return cut, decided
	}
	switch n, wait := f.boxed(s); {
	case wait && !final:
		return 0, false
	case n > 0:
		f.note(Labelled)
		return n, false
	}
	if role := roleAlone.FindString(s); role != "" && !f.cfg.isAsked(role) {
		f.note(Labelled)
		return len(role), false
	}
	var own []string
	if f.cfg.Self != "" {
		own = []string{f.cfg.Self, "@" + f.cfg.Self, "「" + f.cfg.Self + "」"}
	}
	switch n, _, wait := f.name(s, true, own...); {
	case (wait || halfAlone.MatchString(s)) && !final:
		return 0, false
	case n > 0:
		f.note(Labelled)
		return n, false
	}
	if m := label().FindString(s); m != "" && !f.cfg.isAsked(m) {
		list, wait := isLabelList(s[len(m):])
		if wait && !final {
			return 0, false
		}
		if f.kept = list; list {
			return 0, true
		}
		f.note(Labelled)
		f.lead += lead(m)
		return len(m), false
	} else if m == "" && !final && halfLabel.MatchString(s) {
		return 0, false
	}
	n, who, wait := f.name(s, false, f.cfg.Speakers...)
	switch {
	case wait && !final:
		return 0, false
	case n > 0:
		return f.headLine(n, final, func(below string) (same, wait bool) {
			n, other, wait := f.name(strings.TrimLeft(below, "\n\r \t"), false, f.cfg.Speakers...)
			near := !strings.HasPrefix(below, "\n") || other != who && f.cfg.asked(who) && f.cfg.asked(other)
			return n > 0 && near, wait || strings.TrimSpace(below) == ""
		})
	}
	return 0, true
}

var (
	label     = ruleFile.Regexp("label")
	about     = ruleFile.Regexp("about")
	halfLabel = regexp.MustCompile(`^\*{0,2}[\[「]?(?:(?i:[abc][a-z]{0,10}(?:\x20?[a-z助手]{0,10})?)|[助智小机人聊][^\s:：]{0,6})?[\]」]?\*{0,2}[\x20\t]?$`)
	nextLabel = regexp.MustCompile(`[;；]\s*[^\s:：;；\d]{1,20}[:：]|[,，、|]\s*[A-Za-z]{1,12}[:：]`)
	// labelled is the label of a later line, with the marks before it, and halfNext the beginning of that line.
	labelled = regexp.MustCompile(`^([*\[「]{0,3})(?:[^\s*\[\]「」:：。，,.;；!！?？|>#-][^\n*\[\]「」:：。，,.;；!！?？|]{0,24})[\]」]?\*{0,2}[ \t]?[:：]`)
	halfNext = regexp.MustCompile(`^[*\[「]{0,3}[^\n:：。，,.;；!！?？|>#]{0,30}$`)
	noLabel  = regexp.MustCompile(`(?::/|\d[:：]\d)$`) // an address or a time, up to the character behind the colon
)

// roleMarks stand around the label of a role.
const roleMarks = "*[]「」:： \t\r\n"

// isAsked reports whether the question has the word of a label, or asks for a word: the label may be the answer.
func (c *Config) isAsked(label string) bool {
	question := foldAll(c.Question).text
	return hasWord(question, strings.Trim(foldAll(label).text, roleMarks)) || about().MatchString(question)
}

// hasWord finds a word that is no part of a longer one in Latin letters.
func hasWord(s, word string) bool {
	isLatin := func(r rune) bool { return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	for at := 0; word != ""; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			break
		}
		before, _ := utf8.DecodeLastRuneInString(s[:at+i])
		after, _ := utf8.DecodeRuneInString(s[at+i+len(word):])
		first, _ := utf8.DecodeRuneInString(word)
		last, _ := utf8.DecodeLastRuneInString(word)
		if !(isLatin(before) && isLatin(first)) && !(isLatin(after) && isLatin(last)) {
			return true
		}
		at += i + len(word)
	}
	return false
}

// isLabelList reports whether the text behind the label of a role has more labels in its line, or is indented below it as that of a key.
func isLabelList(s string) (list, wait bool) {
	line, below, found := strings.Cut(s, "\n")
	if !found || strings.TrimSpace(line) == "" && strings.TrimSpace(below) == "" {
		return nextLabel.MatchString(line), true
	}
	below = strings.TrimLeft(below, "\r\n")
	return nextLabel.MatchString(line) || strings.TrimSpace(line) == "" && (below[0] == ' ' || below[0] == '\t'), false
}

// lead is what was removed before an answer.
type lead string

// isLike reports whether a later line begins with a label of the same form: each is a word of the answer.
func (l lead) isLike(line string, final bool) (like, wait bool) {
	if l == "" || clock.MatchString(string(l)) {
		return false, false
	}
	m := labelled.FindStringSubmatch(line)
	if m == nil {
		return false, !final && halfNext.MatchString(line)
	}
	n := len(m[0])
	if n == len(line) && !final {
		return false, true
	}
	signs := l[:len(l)-len(strings.TrimLeft(string(l), "*[「"))]
	return string(signs) == m[1] && !noLabel.MatchString(line[:min(n+1, len(line))]), false
}

// putBack shows what was removed before the answer.
func (f *Filter) putBack() {
	if f.called {
		return
	}
	f.out = append([]byte(f.lead), f.out...)
	f.count += utf8.RuneCountInString(string(f.lead))
	f.found = slices.DeleteFunc(f.found, func(k Kind) bool { return k == Labelled })
	f.lead, f.restored, f.kept = "", true, true
}

// headLine decides on n bytes before the first line. It is content if the line below has the same form.
func (f *Filter) headLine(n int, final bool, form func(below string) (same, wait bool)) (int, bool) {
	_, below, found := strings.Cut(f.buf[n:], "\n")
	if !found && !final {
		return 0, false
	}
	// A line gives words or work to several speakers: "张三(u2): 接口；李四(u3): 测试".
	line := f.buf[n : len(f.buf)-len(below)]
	if slices.ContainsFunc(f.cfg.Speakers, func(s string) bool { return strings.Contains(line, s+":") || strings.Contains(line, s+"：") }) {
		f.kept = true
		return 0, true
	}
	same, wait := form(below)
	if wait && !same && !final {
		return 0, false
	}
	if same && found {
		f.kept = true
		return 0, true
	}
	f.note(Labelled)
	return n, false
}

func (c *Config) asked(name string) bool {
	return slices.Contains(c.Askers, plainName.Replace(name))
}

// name matches a name with its colon. wait: it may become one. Only the bot's own may be bold: a bold name of a person is content.
func (f *Filter) name(s string, own bool, names ...string) (n int, who string, wait bool) {
	body, stars := s, ""
	if own {
		body, stars = strings.TrimPrefix(s, "**"), "*"
	}
	for _, one := range names {
		if one == "" {
			continue
		}
		rest, ok := cutFold(body, one)
		if !ok {
			wait = wait || len(s) < len(one)+2 && (s == stars || foldPrefix(one, body))
			continue
		}
		if open := strings.TrimPrefix(rest, " "); own && (strings.HasPrefix(open, "(") || strings.HasPrefix(open, "（")) { // with an id, as people have
			end := ")"
			if open[0] != '(' {
				end = "）"
			}
			id, after, closed := strings.Cut(rest, end)
			if !closed || len(id) >= maxID {
				wait = wait || !closed && len(id) < maxID
				continue
			}
			rest = after
		}
		end := strings.TrimLeft(rest, stars+" ")
		switch {
		case end == "":
			wait = true
		case strings.HasPrefix(end, ":"), strings.HasPrefix(end, "："):
			after := strings.TrimPrefix(strings.TrimPrefix(end, ":"), "：")
			if len(body) < len(s) && !strings.Contains(rest[:len(rest)-len(end)], "*") { // the colon is bold, too
				if strings.HasPrefix("**", after) && after != "**" {
					return len(s) - len(after), one, true
				}
				after = strings.TrimPrefix(after, "**")
			}
			return len(s) - len(after), one, false
		}
	}
	return 0, "", wait
}

// boxed matches the bot's name in brackets, which no link follows. wait: it may become one.
func (f *Filter) boxed(s string) (n int, wait bool) {
	if f.cfg.Self == "" {
		return 0, false
	}
	for _, label := range []string{"[" + f.cfg.Self + "]", "【" + f.cfg.Self + "】"} {
		rest, ok := cutFold(s, label)
		after := strings.TrimLeft(rest, " ")
		switch {
		case !ok:
			wait = wait || len(s) < len(label) && foldPrefix(label, s)
		case after == "":
			return 0, true
		case after[0] == '(' || after[0] == '[':
			return 0, false
		default:
			return len(s) - len(strings.TrimPrefix(strings.TrimPrefix(after, ":"), "：")), false
		}
	}
	return 0, wait
}

const maxID = 80 // bytes

func cutFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

func foldPrefix(s, prefix string) bool {
	return len(prefix) <= len(s) && strings.EqualFold(s[:len(prefix)], prefix)
}

// lineStart decides on the beginning of a later line.
func (f *Filter) lineStart(final bool) (n int, decided bool) {
	s := f.buf
	if n, is, wait := f.lineCall(final); is || wait {
		return n, false
	}
	if len(f.out) == 0 || f.kept {
		return 0, true
	}
	indent := len(s) - len(strings.TrimLeft(s, " \t\u3000"))
	if indent == len(s) && !final {
		return 0, false
	}
	s = s[indent:]
	ofItem := indent > 0 && isItem(f.prev) // it goes on with the item
	if n, _, wait := f.name(s, false, f.cfg.Speakers...); !ofItem && (n > 0 || wait && !final) {
		switch list, wait := f.isIndentedList(s); {
		case n == 0 || indent > 0 && wait && !final:
			return 0, false
		case indent > 0 && list:
			f.kept = true
			return 0, true
		}
		return f.otherSpeaker(n)
	}
	like, wait := f.lead.isLike(s, final)
	if like {
		f.putBack()
	}
	switch {
	case wait:
		return 0, false
	case ofItem || like:
		return 0, true
	case !final && halfClock.MatchString(s):
		return 0, false
	}
	at := len(clock.FindString(s))
	if at == 0 {
		return 0, true
	}
	line, below, found := strings.Cut(s[at:], "\n")
	switch {
	case !found && !final && strings.TrimSpace(line) == "":
		return 0, false
	case strings.TrimSpace(line) != "":
		n, _, wait := f.name(strings.TrimLeft(line, " \t"), false, f.cfg.Speakers...)
		if n > 0 {
			return f.otherSpeaker(at)
		}
		decided = !wait || found || final
		if decided && clock.MatchString(string(f.lead)) && !fullClock.MatchString(string(f.lead)) { // lines of a timetable
			f.putBack()
		}
		return 0, decided
	case fullClock.MatchString(s):
		return f.otherSpeaker(at)
	}
	n, _, wait = f.name(below, false, f.cfg.Speakers...)
	switch {
	case n > 0:
		return f.otherSpeaker(at)
	case (wait || below == "") && !final:
		return 0, false
	}
	return 0, true
}

// isIndentedList reports whether one more indented line below begins with a name: tasks or minutes have such lines.
func (f *Filter) isIndentedList(s string) (list, wait bool) {
	const most = 2000 // bytes
	_, below, _ := strings.Cut(s, "\n")
	for line := range strings.Lines(below[:min(len(below), most)]) {
		text := strings.TrimLeft(line, " \t\u3000")
		n, _, half := f.name(text, false, f.cfg.Speakers...)
		switch {
		case strings.TrimSpace(text) == "":
		case text == line:
			return false, false
		case n > 0:
			return true, false
		case half:
			return false, true
		}
	}
	return false, len(below) < most
}

// isItem reports whether a line below may be a part of it.
func isItem(line string) bool {
	return strings.TrimLeft(line, " \t\u3000") != line || listed.MatchString(line)
}

var (
	introduces = regexp.MustCompile(`(?:[:：][*_ \t]*|^ {0,3}#{1,6} .*|^ *(\*\*|__).*(\*\*|__) *)$`)
	maxIntro   = 200 // bytes
)

// otherSpeaker cuts the answer, unless the line before it introduces words of people.
func (f *Filter) otherSpeaker(n int) (int, bool) {
	if before := strings.TrimSpace(f.prev); introduces.MatchString(before[max(0, len(before)-maxIntro):]) {
		f.kept = true
		return 0, true
	}
	f.note(Spoken)
	f.ended = true
	return n, false
}
