package written

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ebb/sessions"
	"ebb/sessions/reasoning"
)

// Config is the part of a request that decides what its answer may be. The zero value leaves only repetitions to find.
type Config struct {
	// Turn says that people read the answer. Names, calls and marks of templates are looked for only then.
	Turn bool
	// Self is the bot's name, and Speakers are the names before people's messages, as the request shows them. Askers are the
	// speakers of the messages to answer.
	Self             string
	Speakers, Askers []string
	// Question is the messages to answer: the label of a role that it has is a word of the answer.
	Question string
	// Tools are the offered tools.
	Tools []Tool
}

// Tool is an offered tool with the JSON schema of its arguments.
type Tool struct {
	Name   string
	Schema map[string]any
}

// Kind is what was corrected, as the label of a metric.
type Kind string

// The kinds of corrections.
const (
	Called   Kind = "text_call"     // a call written as text became a call
	Garbled  Kind = "unusable_call" // a call written as text was removed
	Labelled Kind = "label"         // a name, a time or a quote before the answer was removed
	Spoken   Kind = "other_speaker" // words in another's name, and all behind them, were cut
	Leaked   Kind = "template"      // a turn of the model's template was cut, or its mark before the answer
	Repeated Kind = "repetition"    // words without end were cut
)

// Kinds lists the kinds of corrections.
func Kinds() []Kind { return []Kind{Called, Garbled, Labelled, Spoken, Leaked, Repeated} }

// Filter takes an answer in pieces of any size and keeps the words to show and to store. The pieces do not matter: shown text
// and Text are equal at the end. Code stays as it is.
type Filter struct {
	cfg   Config
	out   []byte
	shown int    // bytes of out that were returned
	buf   string // undecided
	more  []byte // pieces behind buf
	retry int    // length of both at which they are looked at
	found []Kind
	calls []sessions.ToolCall // without ids
	line  reasoning.Line

	began              bool // the beginning is decided
	text               bool // the beginning is no call
	decided            bool // the current line is no structure
	inLine             bool // the current line has begun
	cur                []byte
	prev               string // last line with words
	kept               bool   // names before lines are content
	lead               lead   // label of a role or time that was removed, with the blanks behind it
	restored           bool   // lead was put back, which changes text that may be shown
	words              int    // marks without an end that begin no call
	mentions, template bool   // marks around turns, and whole turns, that are words of the answer
	called             bool   // a call was found: the words behind it are dropped
	ended              bool   // the rest is dropped

	held   *Filter // looks for repetitions in text that is held back
	looked int     // bytes of buf that it has

	tail  []rune // newest runes of out
	count int    // runes of out
	again int    // runes of out at which a loop that counts may be found
	limit bool   // the model ran to its limit of tokens
}

// New returns a filter for one answer.
func New(cfg Config) *Filter {
	f := &Filter{cfg: cfg}
	for _, s := range cfg.Speakers {
		f.cfg.Speakers = append(slices.Clip(f.cfg.Speakers), variants(s)...)
	}
	return f
}

// Text returns the answer so far.
func (f *Filter) Text() string { return string(f.out) }

// Calls returns the calls that were written as text, without ids.
func (f *Filter) Calls() []sessions.ToolCall { return f.calls }

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
	f.limit, f.again = limit, 0
	if !f.ended {
		f.cutRepeats()
	}
	return f.news()
}

func (f *Filter) news() (show string, undo bool) {
	if undo = f.shown > len(f.out) || f.restored && f.shown > 0; undo {
		f.shown = 0
	}
	f.restored = false
	show = string(f.out[f.shown:])
	f.shown = len(f.out)
	return show, undo
}

func (f *Filter) note(k Kind) {
	if !f.Has(k) {
		f.found = append(f.found, k)
	}
}

func (f *Filter) run(final bool) {
	rest := ""
	f.buf, f.more = f.buf+string(f.more), f.more[:0]
	if !final {
		f.buf, rest = wholeRunes(f.buf)
	}
	for f.buf != "" && !f.ended {
		n := f.next(final)
		if n == 0 {
			f.retry = len(f.buf) + 1 + len(f.buf)/8 // a long wait takes time in proportion to its text
			break
		}
		f.buf, f.retry, f.held, f.looked = f.buf[n:], 0, nil, 0
	}
	if f.more = append(f.more, rest...); f.ended {
		f.buf, f.more, f.retry = "", f.more[:0], 0
	}
}

// wholeRunes cuts off an incomplete character at the end.
func wholeRunes(s string) (whole, rest string) {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if last := s[len(s)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRuneInString(last) {
				return s[:len(s)-n], last
			}
			break
		}
	}
	return s, ""
}

// next decides on the beginning of the buffer, and returns the number of bytes; 0: more text is needed.
func (f *Filter) next(final bool) int {
	if !f.cfg.Turn {
		return f.emit(f.buf)
	}
	if !f.began {
		if n, decided := f.head(final); !decided {
			return n
		}
		f.began = true
	}
	if !f.inLine && !f.decided && !f.line.InCode() {
		n, decided := f.lineStart(final)
		if !decided {
			return n
		}
		f.decided = true
	}
	plain := strings.IndexAny(f.buf, "\n<[")
	switch {
	case plain < 0:
		return f.emit(f.buf)
	case plain > 0:
		return f.emit(f.buf[:plain])
	case f.buf[0] == '\n' || f.line.InCode():
		return f.emit(f.buf[:1])
	}
	return f.mark(final)
}

// mark decides on a mark of a template.
func (f *Filter) mark(final bool) int {
	m, n, wait := findMark(f.buf)
	switch {
	case wait && !final:
		return 0
	case wait && isPartOfMark(f.buf): // the stream ends within it
		f.note(Leaked)
		return len(f.buf)
	case n == 0:
		return f.emit(f.buf[:1])
	case m.place != atCall:
		return f.turn(m, n, final)
	}
	return f.block(m, n, final)
}

// maxWords bounds the marks without an end that are looked at: each look reads the rest of the text.
const maxWords = 8

// block decides on a call between marks.
func (f *Filter) block(m mark, n int, final bool) int {
	begins, wait := f.beginsCall(f.buf[n:])
	if wait && !final {
		return 0
	}
	if !begins || f.words > maxWords {
		return f.emit(f.buf[:n])
	}
	end := len(f.buf)
	at, size := m.closing(f.buf[n:])
	switch {
	case at >= 0:
		end = n + at + size
	case f.endless(f.buf), !final:
		return 0
	}
	if at >= 0 && strings.TrimSpace(f.buf[n:n+at]) == "" {
		return f.emit(f.buf[:end]) // words about a pair of marks
	}
	if f.endless(f.buf[:end]) {
		return end
	}
	calls, ok := f.parse(f.buf[:end])
	if !ok && at < 0 && !f.beginsName(f.buf[n:]) && !strings.ContainsAny(f.buf[n:], "{[") && !strings.Contains(f.buf[n:], "<parameter") && !strings.Contains(f.buf[n:], "<arg_") {
		f.words++
		return f.emit(f.buf[:n]) // words about a mark
	}
	f.take(calls, ok)
	return end
}

func (f *Filter) take(calls []sessions.ToolCall, ok bool) {
	if !ok {
		f.note(Garbled)
		return
	}
	f.note(Called)
	f.calls, f.called = append(f.calls, calls...), true
}

// emit passes text on, and returns its length.
func (f *Filter) emit(s string) int {
	for _, r := range s {
		if r < utf8.RuneSelf {
			f.line.Add(byte(r))
		} else {
			f.line.Add(utf8.RuneSelf) // any byte of a letter
		}
		if r == '\n' {
			if strings.TrimSpace(string(f.cur)) != "" {
				f.prev = string(f.cur)
			}
			f.cur, f.inLine, f.decided = f.cur[:0], false, false
		} else {
			f.cur, f.inLine = utf8.AppendRune(f.cur, r), true
		}
		if !f.called && f.add(r) {
			break
		}
	}
	return len(s)
}
