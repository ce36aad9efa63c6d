package dingtalk

import (
	"strings"
	"unicode/utf8"
)

// piece is a part of a Markdown text, with the fences that keep code blocks closed.
type piece struct{ open, body, close string }

func (p piece) text() string { return p.open + p.body + p.close }

// fence is an open code block: its marker and its info string. The zero value is none.
type fence struct{ mark, info string }

// Bounds of repeated fences in bytes. A longer marker is no fence.
const (
	maxMark  = 16
	maxInfo  = 64
	maxClose = maxMark + 2 // and an escaped newline
)

// split cuts a Markdown text into pieces of at most limit bytes in a JSON string. It prefers to cut between paragraphs, then
// lines, then words. It never cuts inside a character, nor between a heading and its text. The joined bodies are the text.
// limit is at least 1,000.
func split(text string, limit int) []piece {
	var out []piece
	var f fence
	for text != "" {
		p := piece{open: f.reopen()}
		n, after := cut(text, limit-jsonLen(p.open)-maxClose, f)
		p.body, text, f = text[:n], text[n:], after
		if text != "" {
			p.close = f.closing(p.body)
		}
		out = append(out, p)
	}
	return out
}

// border is a place between two lines where a text may be cut.
type border struct {
	pos, used int
	state     fence
}

// The kinds of borders, the better ones later.
const (
	inCode = iota
	betweenLines
	betweenParagraphs
	kinds
)

// cut returns the length of the text that fits into budget, and the code block open there.
func cut(text string, budget int, f fence) (int, fence) {
	var last [kinds]border
	pos, used, fresh := 0, 0, false
	headed := false // a heading precedes
	for pos < len(text) {
		line := text[pos:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		next := f.after(line)
		if pos > 0 && !headed {
			last[borderKind(f, next, fresh)] = border{pos, used, f}
		}
		size, whole := jsonLenWithin(line, budget-used)
		if !whole {
			return choose(last, border{pos, used, f}, line, budget)
		}
		blank := strings.TrimSpace(line) == ""
		headed = f.mark == "" && (isHeading(line) || headed && blank)
		fresh = blank || f.mark != "" && next.mark == ""
		pos, used, f = pos+len(line), used+size, next
	}
	return pos, f
}

// isHeading reports whether a line outside code is a heading: one to six # and a blank.
func isHeading(line string) bool {
	s := strings.TrimLeft(line, " ")
	n := len(s) - len(strings.TrimLeft(s, "#"))
	return len(line)-len(s) < 4 && n > 0 && n < 7 && strings.HasPrefix(s[n:], " ")
}

// borderKind rates the border before a line. fresh: a blank line or the end of a code block precedes.
func borderKind(f, next fence, fresh bool) int {
	switch {
	case f.mark != "":
		return inCode
	case fresh || next.mark != "":
		return betweenParagraphs
	}
	return betweenLines
}

// choose takes the best border that does not leave a piece mostly empty, else it cuts the line.
func choose(last [kinds]border, here border, line string, budget int) (int, fence) {
	for k := kinds - 1; k >= 0; k-- {
		if b := last[k]; b.pos > 0 && b.used >= budget/3 {
			return b.pos, b.state
		}
	}
	return here.pos + cutLine(line, budget-here.used, here.pos == 0), here.state
}

// cutLine returns the number of bytes of a line that fit into budget, back to a near end of a word. must takes at least
// one character.
func cutLine(line string, budget int, must bool) int {
	used, n := 0, 0
	for n < len(line) {
		r, size := utf8.DecodeRuneInString(line[n:])
		w := escapedLen(r, size)
		if used+w > budget && (n > 0 || !must) {
			break
		}
		used, n = used+w, n+size
	}
	if i := strings.LastIndexAny(line[:n], " \t。！？；，、"); i > n*3/4 {
		_, size := utf8.DecodeRuneInString(line[i:])
		return i + size
	}
	return n
}

// after is the code block that is open after a line.
func (f fence) after(line string) fence {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > 3 || s == "" || s[0] != '`' && s[0] != '~' {
		return f
	}
	n := 1
	for n < len(s) && n <= maxMark && s[n] == s[0] {
		n++
	}
	if n < 3 || n > maxMark {
		return f
	}
	info := strings.TrimSpace(s[n:])
	switch {
	case f.mark != "":
		if info == "" && s[0] == f.mark[0] && n >= len(f.mark) {
			return fence{}
		}
		return f
	case s[0] == '`' && strings.Contains(info, "`"):
		return f
	}
	return fence{mark: s[:n], info: info}
}

func (f fence) reopen() string {
	if f.mark == "" {
		return ""
	}
	info := f.info
	if len(info) > maxInfo {
		info = ""
	}
	return f.mark + info + "\n"
}

func (f fence) closing(body string) string {
	if f.mark == "" || strings.HasSuffix(body, "\n") {
		return f.mark
	}
	return "\n" + f.mark
}

// jsonLen is the length of s inside a JSON string as encode writes it, without the quotes.
func jsonLen(s string) int {
	n, _ := jsonLenWithin(s, len(s)*6)
	return n
}

// jsonLenWithin is jsonLen with a bound, so that a long line is not measured again for each piece. whole: s is within
// the bound.
func jsonLenWithin(s string, bound int) (n int, whole bool) {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		n += escapedLen(r, size)
		if n > bound {
			return n, false
		}
		i += size
	}
	return n, true
}

func escapedLen(r rune, size int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < 0x20 || r == '\u2028' || r == '\u2029' || r == utf8.RuneError && size == 1:
		return 6
	}
	return size
}
