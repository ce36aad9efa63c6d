package markdown

import (
	"cmp"
	"regexp"
	"strings"
)

// Safe keeps clients from fetching what a model wrote, since an address can carry words of the conversation to its host.
// A picture of another host becomes a link that names the host, and so does <img>. Other HTML is escaped, unless it only
// formats. A link with another scheme than http, https, mailto and tel becomes text. Code stays as it is.
func (p Pictures) Safe(text string) string { return p.safe(text, false) }

// SafeOpen is [Pictures.Safe] for a text that still grows. It leaves out a tag at the end that is not complete.
func (p Pictures) SafeOpen(text string) string { return p.safe(text, true) }

var suspicious = regexp.MustCompile(`(?i)!\[|<[a-z/!]|\]\(|\]:|dingtalk`)

// safe goes through the text outside of code blocks. Definitions are collected first: a reference may stand before its definition.
func (p Pictures) safe(text string, open bool) string {
	if !suspicious.MatchString(text) {
		return text
	}
	lines := Parse(text)
	var chunks []string // Each second one is code.
	var b strings.Builder
	inFence := false
	for i := range lines {
		l := &lines[i]
		fenced := l.Kind == FenceOpen || l.Kind == Code || l.Kind == FenceClose
		if fenced != inFence {
			chunks = append(chunks, b.String())
			b.Reset()
			inFence = fenced
		}
		b.WriteString(l.Raw)
	}
	chunks = append(chunks, b.String())
	s := sanitizer{pictures: p, defs: map[string]string{}}
	for i := 0; i < len(chunks); i += 2 {
		for _, m := range definitionLine.FindAllStringSubmatch(chunks[i], -1) {
			if label := foldLabel(m[1]); s.defs[label] == "" {
				s.defs[label] = m[2]
			}
		}
	}
	for i := 0; i < len(chunks); i += 2 {
		s.open = open && i == len(chunks)-1
		chunks[i] = s.chunk(chunks[i])
	}
	return strings.Join(chunks, "")
}

var (
	definitionLine = regexp.MustCompile(`(?m)^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*\[([^\[\]]{1,999})\]:[ \t]*\n?[ \t>]*<?([^\s<>]+)`)
	paragraphEnd   = regexp.MustCompile(`\n[ \t>]*\n`)
)

func foldLabel(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// sanitizer rewrites text outside code blocks.
type sanitizer struct {
	pictures Pictures
	defs     map[string]string // addresses by folded label
	open     bool              // the text goes on behind the chunk
}

// chunk rewrites one paragraph after the other: no syntax reaches beyond an empty line.
func (s *sanitizer) chunk(text string) string {
	var b strings.Builder
	open := s.open
	for text != "" {
		end := len(text)
		if m := paragraphEnd.FindStringIndex(text); m != nil {
			end = m[1]
		}
		s.open = open && end == len(text)
		b.WriteString(s.inline(text[:end], 0))
		text = text[end:]
	}
	return b.String()
}

// Bounds of syntax: labels in labels, and bytes of a label. Beyond them and those of a target nothing is a link or a picture, so that
// the time is in proportion to the text.
const (
	maxDeep  = 4
	maxLabel = 4000
)

// inline copies the text up to the next mark that may begin a picture, a link or an element, and lets a function decide about it. A
// bare "!" before a link that was rewritten would make it a picture, so it becomes a full-width one.
func (s *sanitizer) inline(text string, depth int) string {
	var b []byte
	bare, line := 0, 0 // ticks before the first are text; the second begins the line
	for i := 0; i < len(text); {
		rest := text[i:]
		next := strings.IndexAny(rest, "`!]<dD[")
		if next < 0 {
			b = append(b, rest...)
			break
		}
		b = append(b, rest[:next]...)
		if last := strings.LastIndexByte(rest[:next], '\n'); last >= 0 {
			line = i + last + 1
		}
		i, rest = i+next, rest[next:]
		var out string
		var n int
		switch {
		case rest[0] != '`':
			out, n = s.special(rest, rest[0] == '[' && i-line < maxTag && containers.MatchString(text[line:i]), depth)
		case i >= bare && !isEscaped(text, i):
			if out, n = codeSpan(rest); openPipe.MatchString(out) && tableRule.MatchString(text) { // cells of a table end at the pipe
				row, _, _ := strings.Cut(rest, "\n")
				bare, n = i+len(row), 0
			}
		}
		if n < 0 { // the rest is not complete
			break
		}
		if n == 0 {
			out, n = rest[:1], 1
		}
		if n > 1 && out != "" && out[0] == '[' && len(b) > 0 && b[len(b)-1] == '!' { // it would make a picture of a link
			b = append(b[:len(b)-1], "！"...)
		}
		b = append(b, out...)
		i += n
	}
	return string(b)
}

// isEscaped reports whether a backslash makes text of the character at an offset.
func isEscaped(text string, at int) bool {
	n := 0
	for at > n && text[at-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

var (
	// containers are the signs of quotes and lists before the words of a line.
	containers = regexp.MustCompile(`^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*$`)
	openPipe   = regexp.MustCompile(`[^\\]\|`)
	tableRule  = regexp.MustCompile(`(?m)^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\||$)`)

	ownScheme = regexp.MustCompile(`^(?i)(dingtalk)(?::|&colon;|&#0*58;|&#x0*3a;)//`)
	defStart  = regexp.MustCompile(`^\[[^\[\]]{1,999}\]:[ \t]*\n?[ \t>]*<?([^\s<>]+)>?`)
)

// special returns the text in place of the first n bytes; 0: nothing is special; -1: the text is cut here.
func (s *sanitizer) special(rest string, lineStart bool, depth int) (out string, n int) {
	switch rest[0] {
	case '!':
		if strings.HasPrefix(rest, "![") && depth <= maxDeep {
			return s.picture(rest, depth)
		}
	case ']':
		if strings.HasPrefix(rest, "](") {
			if dest, _, n := linkTarget(rest[1:]); n > 0 && !mayOpen(dest) {
				return "]（" + inert(dest) + "）", n + 1
			} else if n > 0 && !strings.ContainsAny(rest[2:n], "!<`") {
				return rest[:n+1], n + 1
			} else if n < 0 {
				return "]（", 2
			}
		}
	case '[':
		if m := defStart.FindStringSubmatch(rest); lineStart && m != nil && !mayOpen(m[1]) {
			return inert(m[0]), len(m[0])
		}
	case 'd', 'D':
		if m := ownScheme.FindString(rest); m != "" {
			return rest[:len("dingtalk")] + "：//", len(m)
		}
	case '<':
		return s.tag(rest, depth)
	}
	return "", 0
}

// A span ends with its line: clients differ beyond it.
func codeSpan(rest string) (string, int) {
	ticks := run(rest, '`')
	line, _, _ := strings.Cut(rest, "\n")
	for at := ticks; at < len(line); {
		next := strings.IndexByte(line[at:], '`')
		if next < 0 {
			break
		}
		at += next
		if n := run(line[at:], '`'); n == ticks {
			return line[:at+n], at + n
		} else {
			at += n
		}
	}
	return rest[:ticks], ticks
}

// picture reads "![label]" with its target or reference. A host that is not allowed turns it into a link that shows its address:
// DingTalk would load the picture from there, and so report who reads it.
func (s *sanitizer) picture(rest string, depth int) (string, int) {
	end := closingBracket(rest[1:])
	if end < 0 {
		if s.open && len(rest) <= maxLabel {
			return rest[:2], 2 // the card holds it back
		}
		return "！[", 2
	}
	label, after := rest[2:end+1], rest[end+2:]
	alt := s.inline(label, depth+1)
	used := end + 2
	switch {
	case strings.HasPrefix(after, "("):
		dest, raw, n := linkTarget(after)
		switch {
		case n > 0 && s.pictures.allows(dest) && !strings.ContainsAny(raw, "!<`"):
			return "![" + alt + "](" + raw + ")", used + n
		case n > 0:
			return shownLink(alt, dest), used + n
		case n < 0 || !s.open:
			return "！[", 2
		}
		return rest[:2], 2
	case strings.HasPrefix(after, "["):
		if n := closingBracket(after); n > 0 {
			name := after[1:n]
			if strings.TrimSpace(name) == "" {
				name = label
			}
			return s.referenced(alt, name, rest[:used+n+1], false)
		}
	}
	return s.referenced(alt, label, rest[:used], strings.HasPrefix(strings.TrimLeft(after, " \t\n"), "("))
}

// apart: a target stands behind a blank.
func (s *sanitizer) referenced(alt, name, raw string, apart bool) (string, int) {
	dest, known := s.defs[foldLabel(name)]
	switch {
	case !known && (strings.ContainsAny(raw[2:], "[<`\\") || apart): // a lenient client may read it as a picture
		return "！[", 2
	case !known:
		return "", 0 // text
	case s.pictures.allows(dest):
		return "![" + alt + "](" + dest + ")", len(raw)
	}
	return shownLink(alt, dest), len(raw)
}

// closingBracket is the offset of the bracket that closes the one at the beginning; -1: none.
func closingBracket(s string) int {
	depth := 0
	for i := 0; i < min(len(s), maxLabel); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// tag decides about one "<": links and pictures become Markdown with allowed addresses, formats stay, other elements become text. A
// tag that is not complete in a growing text is held back (-1), since its end decides.
func (s *sanitizer) tag(rest string, depth int) (string, int) {
	if m := autolinked.FindStringSubmatch(rest); m != nil {
		if mayOpen(m[1]) {
			return m[0], len(m[0])
		}
		return inert(m[1]), len(m[0])
	}
	if m := formats.FindString(rest); m != "" {
		return m, len(m)
	}
	m := tagStart.FindStringSubmatch(rest)
	name := ""
	if m != nil && rest[1] != '/' {
		name = strings.ToLower(m[1])
	}
	element := rest[:min(len(rest), maxElement)]
	if n := tagEnd(element); name == "img" && n > 0 {
		values := attributes(element[len("<img") : n-1])
		first, _, _ := strings.Cut(strings.TrimSpace(values["srcset"]), " ")
		switch dest := cmp.Or(values["src"], strings.TrimRight(first, ",")); {
		case dest == "" && values["alt"] == "":
			return "&lt;", 1
		case dest == "":
			return plainLabel(values["alt"]), n
		case s.pictures.allows(dest):
			return "![" + plainLabel(values["alt"]) + "](" + linkSafe.Replace(dest) + ")", n
		default:
			return shownLink(plainLabel(values["alt"]), dest), n
		}
	}
	if open, close, n := anchor(element); name == "a" && n > 0 && depth <= maxDeep {
		dest, inner := attributes(element[len("<a"):open])["href"], s.inline(element[open+1:close], depth+1)
		switch {
		case dest == "":
			return inner, n
		case mayOpen(dest):
			return "[" + inner + "](" + linkSafe.Replace(decoded(dest)) + ")", n
		}
		return inner + "（" + inert(dest) + "）", n
	}
	if s.open && len(rest) <= maxTag && growing.MatchString(rest) {
		return "", -1
	}
	end := strings.IndexAny(rest[1:], "<>")
	switch {
	case strings.HasPrefix(rest, "<!"), m != nil && elements[strings.ToLower(m[1])], m != nil && end > 0 && strings.Contains(rest[:end+1], "="):
		return "&lt;", 1
	}
	return "", 0
}
