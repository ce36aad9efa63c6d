package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkFilter removes reasoning from a text in pieces. Models write <think>…</think>; some templates omit the opening
// tag, and everything before the closing one is reasoning. A tag in a code span is prose. The result does not depend on
// the pieces.
type thinkFilter struct {
	out     strings.Builder // shown text
	held    string          // possible beginning of a tag, or inside one
	last    byte            // the byte before held
	inside  bool
	leading bool // only blanks precede the open tag
}

// push adds a piece. show is text to pass on; undo retracts all shown text as reasoning.
func (f *thinkFilter) push(s string) (show string, undo bool) {
	f.held += s
	from := f.out.Len()
	for {
		if f.inside {
			if !f.skip() {
				break
			}
			continue
		}
		at, tag := f.nextTag()
		if at < 0 {
			f.emit(len(f.held) - partialTag(f.held))
			break
		}
		f.emit(at)
		f.held = f.held[len(tag):]
		f.last = '>'
		if tag == thinkClose {
			f.out.Reset()
			undo, from = true, 0
			continue
		}
		f.inside, f.leading = true, strings.TrimSpace(f.out.String()) == ""
	}
	return f.out.String()[from:], undo
}

// finish returns held text. Unclosed reasoning is dropped at the beginning of a text, as the answer was cut off, and is
// prose elsewhere.
func (f *thinkFilter) finish() string {
	from := f.out.Len()
	if f.inside && !f.leading {
		f.held = thinkOpen + f.held
	}
	if !f.inside || !f.leading {
		f.emit(len(f.held))
	}
	return f.out.String()[from:]
}

// skip drops reasoning, and reports whether it ended.
func (f *thinkFilter) skip() bool {
	i := strings.Index(f.held, thinkClose)
	if i < 0 {
		if f.leading { // dropped anyway: keep only a possible beginning of the end
			f.held = f.held[len(f.held)-partialTag(f.held):]
		}
		return false
	}
	f.held = f.held[i+len(thinkClose):]
	f.inside, f.last = false, '>'
	return true
}

// nextTag is the first tag in held that is not in a code span.
func (f *thinkFilter) nextTag() (int, string) {
	for i := range len(f.held) {
		prev := f.last
		if i > 0 {
			prev = f.held[i-1]
		}
		if f.held[i] != '<' || prev == '`' {
			continue
		}
		for _, tag := range []string{thinkOpen, thinkClose} {
			if strings.HasPrefix(f.held[i:], tag) {
				return i, tag
			}
		}
	}
	return -1, ""
}

// emit shows the first n held bytes, without the blank lines between reasoning and answer.
func (f *thinkFilter) emit(n int) {
	if n == 0 {
		return
	}
	s := f.held[:n]
	f.last, f.held = s[n-1], f.held[n:]
	if f.out.Len() == 0 {
		s = strings.TrimLeft(s, " \t\r\n")
	}
	f.out.WriteString(s)
}

// partialTag is the length of the longest suffix of s that may begin a tag.
func partialTag(s string) int {
	for n := min(len(thinkClose)-1, len(s)); n > 0; n-- {
		end := s[len(s)-n:]
		if strings.HasPrefix(thinkOpen, end) || strings.HasPrefix(thinkClose, end) {
			return n
		}
	}
	return 0
}
