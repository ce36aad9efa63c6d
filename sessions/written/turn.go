package written

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	roles    = `(?i:user(?:_\d{1,4})?|assistant|system|developer|tool|model|human|ipython|observation|environment|用户|助手)`
	roleName = `(?:(?:[ \t]+name[ \t]*=[ \t]*|[ \t]*[:：][ \t]*)[^\s<>]{1,60})?`
	roleEnds = `<\|(?:end_header_id|header_end|end_of_role|im_middle|im_sep|message|channel)\|>`
	nameEnds = `(?:[ \t]*\r?\n|` + roleEnds + `)`
)

var (
	// roleLine stands behind the start of a turn, roleLabel behind the end of one.
	roleLine  = regexp.MustCompile(`^` + roles + roleName + `(?:[ \t]*\r?\n|` + roleEnds + `)`)
	roleLabel = regexp.MustCompile(`^` + roles + `[ \t]*[:：\r\n]`)
	halfRole  = regexp.MustCompile(`^(?:[A-Za-z]{0,11}|用户?|助手?)(?:[ \t]*\r?|<[|a-z_]{0,15})$`)
	ownRole   = regexp.MustCompile(`^(?i:assistant|model)` + roleName + `(?:[ \t]*\r?\n|` + roleEnds + `)`)
	// halfName is the beginning of a line with a role and a name.
	halfName  = regexp.MustCompile(`^[^\n<>]{0,80}(?:\r?|<[|a-z_]{0,15})$`)
	endOfName = regexp.MustCompile(`^` + nameEnds)
	lineEnd   = regexp.MustCompile(`^[ \t]*\r?\n`)
	halfEnd   = regexp.MustCompile(`^[ \t]*\r?$`)
	// sentence matches the end of a sentence.
	sentence = regexp.MustCompile(`[。！？!?.…～~]["”’)）*]{0,3}$`)
)

// turns decides on the marks around turns of a template.
type turns struct {
	mentions, template bool // marks, and whole turns, that are words of the answer
}

// decide judges a mark of n bytes and those behind it. A turn ended only at the end of the text, or where another one follows by its
// form. All other marks are words about a template, and so is a template behind an introduction.
func (t *turns) decide(s string, m mark, n int, final bool, ns *names, out *output) decision {
	if m.open == "<s>" || m.open == "</s>" && bytes.Contains(out.text, []byte("<s>")) { // HTML
		return words(n)
	}
	last, size := m, n
	for {
		blank := len(s[size:]) - len(strings.TrimLeft(s[size:], " \t\r\n"))
		next, k, wait := findMark(s[size+blank:])
		if wait && !final {
			return open
		}
		if k == 0 || next.place == atCall {
			break
		}
		last, size = next, size+blank+k
	}
	ends, starts, wait := turnEnds(last, s[size:], size > n, ns, out.lines.cur)
	switch {
	case wait && !final:
		return open
	case t.template, (ends || starts) && out.lines.introduced():
		t.template = t.template || starts
	case starts && len(bytes.TrimSpace(out.text)) == 0 && ownTurn(s, last, size, ns.self) > 0:
		return decision{outcome: isRemoved, n: ownTurn(s, last, size, ns.self), found: Leaked, begins: true}
	case starts, ends && !t.mentions:
		return decision{outcome: isRemoved, n: size, found: Leaked, ends: true}
	}
	t.mentions = true
	return words(size)
}

// turnEnds judges the text behind the last mark of a chain. starts: another turn follows. ends: the text ends.
// wait: both may change.
func turnEnds(last mark, rest string, chain bool, ns *names, cur []byte) (ends, starts, wait bool) {
	behind := strings.TrimLeft(rest, " \t\r\n")
	if behind == "" && (last.place != atRole || !lineEnd.MatchString(rest)) {
		return true, false, true
	}
	first, _ := utf8.DecodeRuneInString(rest)
	glued := unicode.IsLetter(first) || unicode.IsDigit(first)
	sentenced := sentence.Match(cur)
	switch last.place {
	case atStart:
		return false, roleLine.MatchString(behind) || ns.isLine(rest), halfRole.MatchString(behind) || halfName.MatchString(behind)
	case atRole:
		line := lineEnd.MatchString(rest)
		if chain {
			return false, line || glued || last.open == "[inst]", halfEnd.MatchString(rest)
		}
		apart := strings.TrimSpace(string(cur)) != "" && bytes.HasSuffix(cur, []byte(" ")) && !sentence.Match(bytes.TrimSpace(cur))
		return false, line && !apart || glued && sentenced, halfEnd.MatchString(rest)
	}
	if roleLabel.MatchString(behind) || sentenced && lineEnd.MatchString(rest) {
		return false, true, false
	}
	if wait = halfRole.MatchString(behind) || halfEnd.MatchString(rest); !lineEnd.MatchString(rest) {
		return false, false, wait
	}
	own, _, half := nameAt(behind, true, ns.self)
	n, _, other := ns.speaker(behind)
	return false, own > 0 || n > 0 || clock.MatchString(behind), wait || half || other || halfClock.MatchString(behind)
}

// isLine reports whether a line is the name of the bot or of a person whom the request shows.
func (ns *names) isLine(s string) bool {
	return isLine(s, ns.self) || slices.ContainsFunc(ns.speakers, func(name string) bool {
		nick, _, _ := strings.Cut(name, "(")
		return isLine(s, name) || isLine(s, nick)
	})
}

func isLine(s, name string) bool {
	rest, ok := cutFold(s, name)
	return ok && name != "" && endOfName.MatchString(rest)
}

// ownTurn returns the bytes of marks that begin the bot's own turn, 0 for none.
func ownTurn(s string, last mark, size int, self string) int {
	rest := s[size:]
	behind := strings.TrimLeft(rest, " \t\r\n")
	switch m := ownRole.FindString(behind); {
	case last.place == atStart && m != "":
		return size + len(rest) - len(behind) + len(m)
	case last.place == atStart && isLine(behind, self):
		return size + len(rest) - len(behind) + len(self) + len(endOfName.FindString(behind[len(self):]))
	case strings.Contains(last.open, "assistant") || last.open == "<|chatbot_token|>":
		return size
	}
	return 0
}
