package written

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	quoteLead = regexp.MustCompile(`^\[引用 [^\n:：]{1,100}: [^\n]*\]\n`)
	roleAlone = regexp.MustCompile(`^(?i:assistant)[ \t]*\r?\n\r?\n`)
	halfAlone = regexp.MustCompile(`^(?i:assistant)[ \t]*\r?(?:\n\r?)?$`)
	halfQuote = regexp.MustCompile(`^\[(?:引(?:用(?: [^\n]*)?)?)?$`)
)

// headAt decides on the beginning of an answer: names, times, quotes and labels of roles, as a request shows them before its messages, are
// no words of it. Lines that all have names are.
func (ns *names) headAt(s string, final bool) decision {
	if !final && (halfClock.MatchString(s) || halfQuote.MatchString(s)) {
		return open
	}
	if m := quoteLead.FindString(s); m != "" {
		return removed(len(m), Labelled)
	}
	if n := len(clock.FindString(s)); n > 0 {
		d := ns.headLine(s, n, final, func(below string) (same, wait bool) {
			return clock.MatchString(below), below == "" || halfClock.MatchString(below)
		})
		d.leads = true
		return d
	}
	switch n, wait := ns.boxed(s); {
	case wait && !final:
		return open
	case n > 0:
		return removed(n, Labelled)
	}
	if role := roleAlone.FindString(s); role != "" && !ns.isAsked(role) {
		return removed(len(role), Labelled)
	}
	switch n, _, wait := nameAt(s, true, ns.own...); {
	case (wait || halfAlone.MatchString(s)) && !final:
		return open
	case n > 0:
		return removed(n, Labelled)
	}
	if m := label().FindString(s); m != "" && !ns.isAsked(m) {
		list, wait := isLabelList(s[len(m):])
		switch {
		case wait && !final:
			return open
		case list:
			return decision{keeps: true}
		}
		d := removed(len(m), Labelled)
		d.leads = true
		return d
	} else if m == "" && !final && halfLabel.MatchString(s) {
		return open
	}
	n, who, wait := ns.speaker(s)
	switch {
	case wait && !final:
		return open
	case n > 0:
		return ns.headLine(s, n, final, func(below string) (same, wait bool) {
			n, next, wait := ns.speaker(strings.TrimLeft(below, "\n\r \t"))
			near := !strings.HasPrefix(below, "\n") || next != who && ns.asked(who) && ns.asked(next)
			return n > 0 && near, wait || strings.TrimSpace(below) == ""
		})
	}
	return other
}

// headLine decides on n bytes before the first line. They are words if the line has further names, or the one below the same form.
func (ns *names) headLine(s string, n int, final bool, form func(below string) (same, wait bool)) decision {
	_, below, found := strings.Cut(s[n:], "\n")
	if !found && !final {
		return open
	}
	if ns.areIn(s[n : len(s)-len(below)]) {
		return decision{keeps: true}
	}
	same, wait := form(below)
	switch {
	case wait && !same && !final:
		return open
	case same && found:
		return decision{keeps: true}
	}
	return removed(n, Labelled)
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
func (ns *names) isAsked(label string) bool {
	question := foldAll(ns.question).text
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
