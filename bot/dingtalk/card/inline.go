package card

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the role of a stretch of text within a paragraph.
type kind uint8

const (
	plain    kind = iota
	escape        // backslash and the character it escapes
	code          // code span
	openCode      // code span without its end, up to the end of the text
	delims        // run of *, _ or ~
	opening       // [ or ![
	closing       // ]
	target        // ](…) of a link
	cutLink       // ]( with a newline before the ), which a <br> would make a link
	halfLink      // ](… up to the end of the text
	breaking      // <br>
	newline
	address // <https://…>
	less    // any other <
	half    // beginning of a tag or an entity at the end of the text
)

type token struct {
	kind       kind
	begin, end int
}

// A longer label of a link is shown before the link is whole; a longer entity is text. Both are in bytes.
const (
	maxLabel  = 600
	maxEntity = 32
	maxNested = 32 // parentheses in a link's target, and delimiters looked at for one that closes
)

var (
	breakTag   = regexp.MustCompile(`^<[bB][rR][ \t]*/?>`)
	halfBreak  = regexp.MustCompile(`^<(?:[bB](?:[rR][ \t]*/?)?)?$`)
	autolink   = regexp.MustCompile(`^<(?:https?://|mailto:)[^\s<>]*>`)
	halfLinked = regexp.MustCompile(`^<(?:h|ht|htt|https?|https?:|https?:/|https?://[^\s<>]*|m|ma|mai|mail|mailt|mailto|mailto:[^\s<>]*)$`)
	halfEntity = regexp.MustCompile(`^&#?[0-9A-Za-z]*$`)
)

// open: the text goes on behind the paragraph, heading or cell.
func inline(s string, open bool) string {
	tokens := scan(s, open)
	if open {
		if tokens = held(s, tokens); len(tokens) == 0 {
			return ""
		}
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i, t := range tokens {
		text := s[t.begin:t.end]
		switch t.kind {
		case code, openCode:
			text = strings.ReplaceAll(text, "\n", " ")
		case target, halfLink:
			text = strings.ReplaceAll(text, "<", "&lt;")
		case cutLink:
			text = `]\(`
		case less:
			text = "&lt;"
		case breaking:
			text = "<br>"
		case newline:
			if text = "<br>"; i > 0 && tokens[i-1].kind == breaking {
				text = ""
			}
		case address:
			text = text[1 : len(text)-1]
		}
		b.WriteString(text)
	}
	if open {
		b.WriteString(closers(s, tokens))
	}
	return b.String()
}

// scan takes time in proportion to the text: a run of backticks is looked up, not searched.
func scan(s string, open bool) []token {
	next := backticks(s)
	var out []token
	begin := 0
	for i := 0; i < len(s); {
		k, n := special(s, i, open, next)
		if n == 0 {
			i++
			continue
		}
		if begin < i {
			out = append(out, token{plain, begin, i})
		}
		out = append(out, token{k, i, i + n})
		i += n
		begin = i
	}
	if begin < len(s) {
		out = append(out, token{plain, begin, len(s)})
	}
	return out
}

// special is the kind and the length of the syntax at an offset; length 0 without one.
func special(s string, i int, open bool, next map[int]int) (kind, int) {
	rest := s[i:]
	switch s[i] {
	case '\\':
		switch {
		case len(rest) > 1 && rest[1] == '\n':
			return newline, 2
		case len(rest) > 1 && rest[1] < utf8.RuneSelf && unicode.In(rune(rest[1]), unicode.P, unicode.S):
			return escape, 2
		case len(rest) == 1 && open:
			return half, 1
		}
	case '`':
		n := len(rest) - len(strings.TrimLeft(rest, "`"))
		if end, ok := next[i]; ok {
			return code, end - i
		}
		if open {
			return openCode, len(rest)
		}
		return plain, n
	case '*', '_', '~':
		return delims, len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	case '!':
		if strings.HasPrefix(rest, "![") {
			return opening, 2
		}
	case '[':
		return opening, 1
	case ']':
		return afterLabel(rest, open)
	case '\n':
		return newline, 1
	case '<':
		return tag(rest, open)
	case '&':
		if open && len(rest) <= maxEntity && halfEntity.MatchString(rest) {
			return half, len(rest)
		}
	}
	return plain, 0
}

func tag(rest string, open bool) (kind, int) {
	if m := breakTag.FindString(rest); m != "" {
		return breaking, len(m)
	}
	if m := autolink.FindString(rest); m != "" {
		return address, len(m)
	}
	if open && (halfBreak.MatchString(rest) || halfLinked.MatchString(rest)) {
		return half, len(rest)
	}
	return less, 1
}

func afterLabel(rest string, open bool) (kind, int) {
	if !strings.HasPrefix(rest, "](") {
		return closing, 1
	}
	depth := 0
	for i := 1; i < len(rest) && depth <= maxNested; i++ {
		switch rest[i] {
		case '\n':
			return cutLink, 2
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return target, i + 1
			}
		}
	}
	if open && depth <= maxNested {
		return halfLink, len(rest)
	}
	return closing, 1
}

// backticks maps each run's offset to the end of the next run of the same length.
func backticks(s string) map[int]int {
	if strings.IndexByte(s, '`') < 0 {
		return nil
	}
	out, ends := map[int]int{}, map[int]int{}
	for i := len(s); i > 0; {
		end := strings.LastIndexByte(s[:i], '`') + 1
		if end == 0 {
			break
		}
		begin := len(strings.TrimRight(s[:end], "`"))
		if pair, ok := ends[end-begin]; ok {
			out[begin] = pair
		}
		ends[end-begin] = end
		i = begin
	}
	return out
}

// held drops tokens that can't be shown while the text goes on: incomplete links, tags and entities, and marks at the
// end.
func held(s string, tokens []token) []token {
	cut := len(tokens)
	var labels []int // tokens of the labels that are open
	for i, t := range tokens {
		last := i == len(tokens)-1
		switch t.kind {
		case newline:
			labels = nil
		case opening:
			labels = append(labels, i)
		case closing, target, cutLink, halfLink:
			from := i
			if n := len(labels); n > 0 {
				if t.begin-tokens[labels[n-1]].begin <= maxLabel {
					from = labels[n-1]
				}
				labels = labels[:n-1]
			}
			if t.kind == halfLink || t.kind == closing && last {
				cut = min(cut, from)
			}
		case half:
			cut = min(cut, i)
		}
	}
	for _, i := range labels {
		if len(s)-tokens[i].begin <= maxLabel {
			cut = min(cut, i)
		}
	}
	tokens = tokens[:cut]
	for len(tokens) > 0 {
		t := &tokens[len(tokens)-1]
		switch t.kind {
		case plain:
			t.end = t.begin + len(strings.TrimRight(s[t.begin:t.end], " \t`"))
		case openCode:
			if t.end = t.begin + len(strings.TrimRight(s[t.begin:t.end], " \t\n`")); t.end < t.begin+len(ticks(s[t.begin:])) {
				t.end = t.begin
			}
		case delims, newline, breaking, opening:
			t.end = t.begin
		}
		if t.begin < t.end {
			break
		}
		tokens = tokens[:len(tokens)-1]
	}
	return tokens
}

func ticks(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "`"))] }

type delimiter struct {
	char       byte
	count      int // not yet used
	size       int
	mayBe2Ways bool
}

// closers ends open code and emphasis, by CommonMark's rules for emphasis.
func closers(s string, tokens []token) string {
	var stack []delimiter
	var out strings.Builder
	for _, t := range tokens {
		switch t.kind {
		case openCode:
			out.WriteString(ticks(s[t.begin:]))
		case delims:
			stack = emphasis(stack, s, t)
		}
	}
	for _, d := range slices.Backward(stack) {
		for range d.count {
			out.WriteByte(d.char)
		}
	}
	return out.String()
}

func emphasis(stack []delimiter, s string, t token) []delimiter {
	d := delimiter{char: s[t.begin], size: t.end - t.begin}
	d.count = d.size
	if d.char == '~' && d.size != 2 {
		return stack
	}
	opens, closes := flanks(s, t)
	d.mayBe2Ways = opens && closes
	for i := len(stack) - 1; closes && d.count > 0 && i >= 0 && i >= len(stack)-maxNested; i-- {
		o := &stack[i]
		if o.char != d.char || (o.mayBe2Ways || d.mayBe2Ways) && (o.size+d.size)%3 == 0 && (o.size%3 != 0 || d.size%3 != 0) {
			continue
		}
		for o.count > 0 && d.count > 0 {
			n := 1
			if o.count > 1 && d.count > 1 {
				n = 2
			}
			o.count, d.count = o.count-n, d.count-n
		}
		if stack = stack[:i+1]; o.count == 0 {
			stack = stack[:i]
		} else {
			i++
		}
	}
	if opens && d.count > 0 {
		stack = append(stack, d)
	}
	return stack
}

func flanks(s string, t token) (opens, closes bool) {
	before, after := ' ', ' '
	if t.begin > 0 {
		before, _ = utf8.DecodeLastRuneInString(s[:t.begin])
	}
	if t.end < len(s) {
		after, _ = utf8.DecodeRuneInString(s[t.end:])
	}
	left := !isSpace(after) && (!isPunct(after) || isSpace(before) || isPunct(before))
	right := !isSpace(before) && (!isPunct(before) || isSpace(after) || isPunct(after))
	if s[t.begin] == '_' {
		return left && (!right || isPunct(before)), right && (!left || isPunct(after))
	}
	return left, right
}

// isSpace and isPunct take a newline for the <br> that replaces it.
func isSpace(r rune) bool { return r != '\n' && unicode.IsSpace(r) }
func isPunct(r rune) bool { return r == '\n' || unicode.IsPunct(r) || unicode.IsSymbol(r) }
