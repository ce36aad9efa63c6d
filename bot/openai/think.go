package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkFilter takes the thinking out of a text that arrives in pieces. Models write it as <think>…</think>; some
// templates swallow the opening tag, so that only the closing one arrives, and everything before it was thinking.
// A tag in a code span is prose about tags. The result does not depend on how the text was cut.
type thinkFilter struct {
	out     strings.Builder // what was shown
	held    string          // may be the beginning of a tag, or is inside one
	last    byte            // the byte before held
	inside  bool
	leading bool // the open tag had nothing but blanks before it
}

// push adds a piece. show is text to pass on; undo says that all that was shown before it turned out to be thinking.
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

// finish gives what was held back: thinking that never ended is dropped where the text began with it (the answer was
// cut off), and is prose after all where it did not.
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

// skip drops thinking up to its end, and reports whether the end has come.
func (f *thinkFilter) skip() bool {
	i := strings.Index(f.held, thinkClose)
	if i < 0 {
		if f.leading { // it will be dropped in any case: keep only what may be the beginning of the end
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

// emit shows the first n held bytes. The blank lines between thinking and answer belong to neither.
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

// partialTag is the length of the longest end of s that a tag may begin with.
func partialTag(s string) int {
	for n := min(len(thinkClose)-1, len(s)); n > 0; n-- {
		end := s[len(s)-n:]
		if strings.HasPrefix(thinkOpen, end) || strings.HasPrefix(thinkClose, end) {
			return n
		}
	}
	return 0
}
