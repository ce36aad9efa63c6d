package reasoning

import "strings"

// Filter takes a text in pieces of any size and keeps the answer. The zero value is ready.
//
// Models write <think>…</think> in front of the answer. Some templates omit the opening tag: everything before such a
// closing tag is reasoning. Reasoning within an answer begins at the beginning of a line. Any other tag is text of the
// answer: one in code, or a pair in a sentence.
type Filter struct {
	state   state
	out     strings.Builder
	thought []byte // reasoning that TakeThought has not returned
	tag     []byte // possible beginning of a tag
	hold    []byte // text whose role is undecided
	line    Line
	unread  []byte // reasoning, and text whose role is undecided, that TakeUnread has not returned

	channels channels

	leading  bool // the reasoning precedes the answer
	assumed  bool // no tag opened the reasoning
	decided  bool // hold begins behind a closing tag in code, which counts if no other follows
	opened   int  // tags that the reasoning opened besides its own
	pairs    int  // open tags that are text
	dropped  bool
	untagged bool
}

type state uint8

const (
	answering state = iota
	thinking
	// More tags were opened than closed. The text is reasoning if another closing tag follows, otherwise the answer.
	doubting
)

var tags = []string{
	"<think>", "</think>", "<thinking>", "</thinking>", "<thought>", "</thought>", "<seed:think>", "</seed:think>",
}

// Strip returns the answer in a whole text, without blanks around it.
func Strip(text string) string {
	var f Filter
	f.Push(text)
	f.Finish()
	return strings.TrimSpace(f.Text())
}

// Assume begins with reasoning that no tag opens. Without a closing tag the text is the answer.
func (f *Filter) Assume() { f.state, f.leading, f.assumed = thinking, true, true }

// Text returns the answer so far.
func (f *Filter) Text() string { return f.out.String() }

// Untagged reports whether reasoning ended that no tag had opened.
func (f *Filter) Untagged() bool { return f.untagged }

// TakeThought returns the reasoning since its last call. Reasoning without an opening tag is left out.
func (f *Filter) TakeThought() string {
	s := string(f.thought)
	f.thought = f.thought[:0]
	return s
}

// TakeUnread returns all text since its last call that Push did not show: reasoning, and text whose role is undecided.
func (f *Filter) TakeUnread() string {
	s := string(f.unread)
	f.unread = f.unread[:0]
	return s
}

// Push adds a piece. show is text to pass on; undo retracts all shown text as reasoning.
func (f *Filter) Push(s string) (show string, undo bool) {
	from := f.out.Len()
	f.dropped = false
	for i := range len(s) {
		f.channel(s[i])
	}
	if f.dropped {
		from = 0
	}
	return f.out.String()[from:], f.dropped
}

// Finish ends the text and returns its rest. Unclosed reasoning in front of the answer is dropped, as the answer was
// cut off. Within an answer it is text.
func (f *Filter) Finish() string {
	from := f.out.Len()
	f.closeChannels()
	f.flushTag()
	if f.state == doubting || !f.leading || f.assumed || f.decided {
		f.show(f.hold)
	}
	f.hold = nil
	return f.out.String()[from:]
}

// add takes one byte. Bytes that may begin a tag are held until they are one or can't be; then the first of them is text, and the
// rest is judged again.
func (f *Filter) add(c byte) {
	if len(f.tag) == 0 && c != '<' {
		f.text(c)
		return
	}
	f.tag = append(f.tag, c)
	begins := false
	for i, t := range tags {
		if t == string(f.tag) {
			f.tagged(i%2 == 0)
			f.tag = f.tag[:0]
			return
		}
		begins = begins || strings.HasPrefix(t, string(f.tag))
	}
	if begins {
		return
	}
	f.tag = f.tag[:len(f.tag)-1]
	f.flushTag()
	if c == '<' {
		f.tag = append(f.tag, c)
	} else {
		f.text(c)
	}
}

// flushTag makes text of a tag or its beginning.
func (f *Filter) flushTag() {
	for _, c := range f.tag {
		f.text(c)
	}
	f.tag = f.tag[:0]
}

func (f *Filter) text(c byte) {
	f.line.Add(c)
	if f.state == answering {
		f.show([]byte{c})
		return
	}
	f.unread = append(f.unread, c)
	switch {
	case f.state == doubting, !f.leading, f.assumed, f.decided:
		f.hold = append(f.hold, c)
	default:
		f.thought = append(f.thought, c)
	}
}

func (f *Filter) show(b []byte) {
	if f.out.Len() == 0 {
		b = []byte(strings.TrimLeft(string(b), " \t\r\n"))
	}
	f.out.Write(b)
}

func (f *Filter) tagged(opening bool) {
	inCode := f.line.InCode()
	before := f.line
	switch {
	case opening && f.opens(inCode), !opening && f.closes(inCode):
		if f.line = (Line{}); f.decided {
			f.line = before // the code goes on
		}
	default:
		f.flushTag()
	}
}

func (f *Filter) opens(inCode bool) bool {
	switch {
	case f.state == answering && !inCode && f.line.blank():
		f.state, f.leading = thinking, f.out.Len() == 0
		f.opened, f.pairs = 0, 0
		if !f.leading {
			f.hold = append(f.hold, f.tag...) // text, unless a closing tag follows
		}
		return true
	case f.assumed && f.state == thinking && strings.TrimSpace(string(f.hold)) == "":
		f.assumed, f.hold = false, nil
		return true
	case f.state == thinking && !inCode:
		f.opened++
	case f.state == thinking && !f.decided, !inCode:
		f.pairs++
	}
	return false
}

// closes decides what an end tag means. It ends reasoning, or is the second half of a quoted pair. In an answer that opened none it
// shows that all text so far was reasoning. It returns whether the tag is dropped.
func (f *Filter) closes(inCode bool) bool {
	switch {
	case f.state == thinking && !inCode:
		f.untagged = f.untagged || f.assumed
		f.state = answering
		if f.opened > 0 {
			f.state = doubting
		}
		f.hold, f.assumed, f.decided, f.pairs = nil, false, false, 0
		return true
	case f.pairs > 0:
		f.pairs--
	case f.state == thinking && f.leading && !f.decided:
		f.decided, f.hold = true, nil
		return true
	case inCode:
	case f.state == doubting:
		if f.opened--; f.opened == 0 {
			f.state = answering
		}
		f.hold = nil
		return true
	case f.state == answering:
		f.out.Reset()
		f.dropped, f.untagged = true, true
		return true
	}
	return false
}
