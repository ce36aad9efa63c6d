package written

import (
	"slices"
	"strings"

	"ebb/sessions"
)

// Filter takes an answer in pieces of any size and keeps the words to show and to store. The pieces do not matter: shown text
// and Text are equal at the end. Code stays as it is.
type Filter struct {
	turn  bool   // names, calls and marks of templates are looked for
	buf   string // undecided
	more  []byte // pieces behind buf
	retry int    // length of both at which they are looked at

	names names
	calls calls
	turns turns

	began   bool // the beginning is decided
	text    bool // the beginning is no call
	decided bool // the current line is no structure
	kept    bool // names before lines are content
	lead    lead // label of a role or time that was removed, with the blanks behind it

	out      output
	shown    int  // bytes of out that were returned
	restored bool // lead was put back, which changes text that may be shown
	found    []Kind
	called   []sessions.ToolCall // without ids; the words behind one are dropped
	ended    bool                // the rest is dropped
}

// New returns a filter for one answer.
func New(cfg Config) *Filter {
	return &Filter{turn: cfg.Turn, names: newNames(cfg), calls: calls{tools: cfg.Tools}, out: output{counting: cfg.Turn}}
}

// Text returns the answer so far.
func (f *Filter) Text() string { return string(f.out.text) }

// Calls returns the calls that were written as text, without ids.
func (f *Filter) Calls() []sessions.ToolCall { return f.called }

// Found lists what was corrected, each kind once.
func (f *Filter) Found() []Kind { return f.found }

// Has reports whether a kind was corrected.
func (f *Filter) Has(k Kind) bool { return slices.Contains(f.found, k) }

// Ended reports whether all further text will be dropped.
func (f *Filter) Ended() bool { return f.ended }

// Push adds a piece. show is text to pass on; undo retracts all shown text before it.
func (f *Filter) Push(s string) (show string, undo bool) {
	if f.more = append(f.more, s...); len(f.buf)+len(f.more) >= f.retry {
		f.run(false)
	}
	return f.news()
}

// Finish ends the text and returns its rest. limit says that the model ran to its limit of tokens: it may be in a loop.
func (f *Filter) Finish(limit bool) (show string, undo bool) {
	f.run(true)
	if !f.ended && f.out.finish(limit) {
		f.note(Repeated)
		f.ended = true
	}
	return f.news()
}

func (f *Filter) news() (show string, undo bool) {
	if undo = f.shown > len(f.out.text) || f.restored && f.shown > 0; undo {
		f.shown = 0
	}
	f.restored = false
	show = string(f.out.text[f.shown:])
	f.shown = len(f.out.text)
	return show, undo
}

func (f *Filter) run(final bool) {
	rest := ""
	f.buf, f.more = f.buf+string(f.more), f.more[:0]
	if !final {
		f.buf, rest = wholeRunes(f.buf)
	}
	for f.buf != "" && !f.ended {
		d := f.next(final)
		if f.apply(d); d.n == 0 {
			f.retry = len(f.buf) + 1 + len(f.buf)/8 // a long wait takes time in proportion to its text
			break
		}
		f.buf, f.retry = f.buf[d.n:], 0
		f.calls.forget()
	}
	if f.more = append(f.more, rest...); f.ended {
		f.buf, f.more, f.retry = "", f.more[:0], 0
	}
}

// next decides on the beginning of the buffer. The beginning of an answer and that of a line are looked at first.
func (f *Filter) next(final bool) decision {
	if !f.turn {
		return words(len(f.buf))
	}
	if !f.began {
		d := f.head(final)
		if d.outcome != isOther {
			return d
		}
		f.apply(d)
		f.began = true
	}
	if len(f.out.lines.cur) == 0 && !f.decided && !f.out.lines.code.InCode() {
		d := f.line(final)
		if d.outcome != isOther {
			return d
		}
		f.apply(d)
		f.decided = true
	}
	plain := strings.IndexAny(f.buf, "\n<[")
	switch {
	case plain < 0:
		return words(len(f.buf))
	case plain > 0:
		return words(plain)
	case f.buf[0] == '\n' || f.out.lines.code.InCode():
		return words(1)
	}
	return f.mark(final)
}

func (f *Filter) head(final bool) decision {
	if blank := len(f.buf) - len(strings.TrimLeft(f.buf, " \t\r\n")); blank > 0 {
		d := removed(blank, "")
		d.leads = f.lead != ""
		return d
	}
	if !f.text {
		if d := f.calls.whole(f.buf, final); d.outcome != isOther {
			return d
		}
		f.text = true
	}
	return f.names.headAt(f.buf, final)
}

func (f *Filter) line(final bool) decision {
	if d := f.calls.line(f.buf, final, &f.out.lines); d.outcome != isOther {
		return d
	}
	if len(f.out.text) == 0 || f.kept {
		return other
	}
	return f.names.speakerAt(f.buf, final, &f.out.lines, f.lead)
}

func (f *Filter) mark(final bool) decision {
	m, n, wait := findMark(f.buf)
	switch {
	case wait && !final:
		return open
	case wait && isPartOfMark(f.buf): // the stream ends within it
		return removed(len(f.buf), Leaked)
	case n == 0:
		return words(1)
	case m.place != atCall:
		return f.turns.decide(f.buf, m, n, final, &f.names, &f.out)
	}
	return f.calls.marked(f.buf, m, n, final)
}

// apply changes the answer by a decision on the beginning of the buffer.
func (f *Filter) apply(d decision) {
	if d.outcome == isWords {
		f.emit(f.buf[:d.n])
	}
	if d.found != "" {
		f.note(d.found)
	}
	if len(d.calls) > 0 {
		f.called = append(f.called, d.calls...)
	}
	f.ended = f.ended || d.ends
	f.kept = f.kept || d.keeps
	if d.leads {
		f.lead += lead(f.buf[:d.n])
	}
	if d.restores && len(f.called) == 0 {
		f.putBack()
	}
	if d.begins {
		f.began, f.decided = false, false
	}
}

// emit passes words on, but those behind a call.
func (f *Filter) emit(s string) {
	if strings.Contains(s, "\n") {
		f.decided = false
	}
	if len(f.called) > 0 {
		f.out.pass(s)
		return
	}
	if f.out.add(s) {
		f.note(Repeated)
		f.ended = true
	}
}

func (f *Filter) note(k Kind) {
	if !f.Has(k) {
		f.found = append(f.found, k)
	}
}

// putBack shows what was removed before the answer.
func (f *Filter) putBack() {
	f.out.prepend(string(f.lead))
	f.found = slices.DeleteFunc(f.found, func(k Kind) bool { return k == Labelled })
	f.lead, f.restored, f.kept = "", true, true
}
