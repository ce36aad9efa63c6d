package reasoning

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// channels reads the messages of a gpt-oss model whose server leaves its template in the text:
//
//	<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>
//
// Only the channel final is the answer. A message to a tool stays, as a call in the form of the template. A header in code, in a sentence, or
// behind a colon is text.
type channels struct {
	into    channel
	mark    []byte // possible beginning of a header
	hold    []byte // words behind "analysis", without marks
	said    bool   // there was text
	last    byte   // last byte of the text, without blanks
	seen    bool   // a header was read
	ignores bool   // a header is text, and so are all
}

type channel uint8

const (
	toAnswer channel = iota
	toThought
	toCall
	toHold
)

const (
	bareThought = "analysis"
	bareAnswer  = "assistantfinal"
	maxHeader   = 200 // bytes between two marks
)

var messageEnds = []string{"<|end|>", "<|return|>", "<|call|>"}

type header struct {
	end     string // the end of the message before
	start   bool
	channel string
	to      string
}

var (
	roleForm    = regexp.MustCompile(`^(?:assistant)?(?: to=([\w.-]+))?$`)
	channelForm = regexp.MustCompile(`^\s*(analysis|commentary|final)(?:\s+to=([\w.-]+))?(?:\s+\w+)?\s*$`)
	plainForm   = regexp.MustCompile(`^[ \w.=-]*$`)
)

// readHeader reads a header that is the whole text; wait: it may become one.
func readHeader(s string) (h header, ok, wait bool) {
	next := func(marks ...string) string {
		for _, m := range marks {
			if strings.HasPrefix(s, m) {
				s = s[len(m):]
				return m
			}
			wait = wait || strings.HasPrefix(m, s)
		}
		return ""
	}
	words := func() string {
		at := strings.IndexByte(s, '<')
		if at < 0 {
			wait = len(s) < maxHeader && plainForm.MatchString(s)
			return s
		}
		w := s[:at]
		s = s[at:]
		return w
	}
	m := next(append(messageEnds, "<|start|>", "<|channel|>")...)
	if m != "" && m != "<|start|>" && m != "<|channel|>" {
		h.end = m
		s = strings.TrimLeft(s, " \r\n")
		m = next("<|start|>", "<|channel|>")
	}
	if h.start = m == "<|start|>"; h.start {
		form := roleForm.FindStringSubmatch(words())
		if wait || form == nil {
			return h, false, wait
		}
		h.to, m = form[1], next("<|channel|>")
	}
	if m == "" {
		return h, false, wait
	}
	form := channelForm.FindStringSubmatch(words())
	if wait || form == nil {
		return h, false, wait
	}
	if h.channel = form[1]; form[2] != "" {
		h.to = form[2]
	}
	if next("<|message|>", "<|constrain|>") == "<|constrain|>" {
		if words(); !wait {
			next("<|message|>")
		}
	}
	return h, !wait && s == "", wait
}

// channel takes a byte of the model's text.
func (f *Filter) channel(c byte) {
	ch := &f.channels
	if len(ch.mark) == 0 && c != '<' && (ch.said || c != bareThought[0]) {
		f.word(c)
		return
	}
	ch.mark = append(ch.mark, c)
	switch bare, n := string(ch.mark), len(bareThought); {
	case c != '<' && !ch.said && strings.HasPrefix(bareThought, bare):
		return
	case !ch.said && len(bare) > n && bare[:n] == bareThought && (bare[n] >= 'A' && bare[n] <= 'Z' || bare[n] >= utf8.RuneSelf):
		ch.into, ch.said = toHold, true
		f.release(len(bare))
		return
	}
	h, ok, wait := readHeader(string(ch.mark))
	switch {
	case ok && f.begins(h):
		f.enter(h)
	case wait:
	default:
		f.release(1)
	}
}

// release makes words of the first n bytes of a text that is no header, and looks at the rest again. A thought may end without another message.
func (f *Filter) release(n int) {
	ch := &f.channels
	held := string(ch.mark)
	ch.mark = ch.mark[:0]
	for _, end := range messageEnds {
		if rest, ok := strings.CutPrefix(held, end); ok && ch.into == toThought && !f.line.InCode() {
			ch.into, f.line = toAnswer, Line{}
			held, n = rest, 0
		}
	}
	for i, c := range []byte(held) {
		if i < n {
			f.word(c)
		} else {
			f.channel(c)
		}
	}
}

// begins reports whether a header begins a message.
func (f *Filter) begins(h header) bool {
	ch := &f.channels
	behind := h.end != "" || h.start
	switch {
	case ch.ignores, f.state != answering && !f.assumed:
		return false
	case ch.into == toThought, ch.into == toCall, ch.into == toHold:
		return behind || !f.line.InCode()
	case f.line.InCode():
		return false
	case !ch.said, ch.seen && behind:
		return true
	}
	ch.ignores = ch.last == ':' || ch.last == "："[2] || h.end == "" && !f.line.blank()
	return !ch.ignores
}

// enter begins a message.
func (f *Filter) enter(h header) {
	ch := &f.channels
	f.flushTag()
	switch {
	case ch.into == toCall:
		f.addAll("<|call|>")
	case h.end != "" && !ch.seen && ch.said: // the template wrote the first header
		f.dropped = f.dropped || f.out.Len() > 0
		f.out.Reset()
		f.untagged = true
	}
	f.state, f.hold, f.assumed, f.leading, f.decided, f.line = answering, nil, false, false, false, Line{}
	ch.mark, ch.seen, ch.said = ch.mark[:0], true, true
	switch {
	case h.to != "":
		ch.into = toCall
		f.addAll("<|channel|>commentary to=" + h.to + "<|message|>")
	case h.channel == "final":
		ch.into = toAnswer
	default:
		ch.into = toThought
	}
}

func (f *Filter) addAll(s string) {
	for _, c := range []byte(s) {
		f.add(c)
	}
}

// word takes a byte that belongs to no header.
func (f *Filter) word(c byte) {
	ch := &f.channels
	if ch.into == toThought || ch.into == toHold {
		f.line.Add(c)
		f.unread = append(f.unread, c)
	}
	switch ch.into {
	case toThought:
		f.thought = append(f.thought, c)
		return
	case toHold:
		if ch.hold = append(ch.hold, c); bytes.HasSuffix(ch.hold, []byte(bareAnswer)) {
			ch.into, ch.hold, ch.seen, f.line = toAnswer, nil, true, Line{}
		}
		return
	}
	if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
		ch.said, ch.last = true, c
	}
	f.add(c)
}

// closeChannels ends the text. The end of the last message is no text.
func (f *Filter) closeChannels() {
	ch := &f.channels
	for _, end := range messageEnds {
		if ch.seen && ch.into != toCall && strings.TrimSpace(string(ch.mark)) == end {
			ch.mark = nil
		}
	}
	if ch.into == toHold {
		ch.into, f.line = toAnswer, Line{}
		ch.mark, ch.hold = append(ch.hold, ch.mark...), nil
	}
	for _, c := range ch.mark {
		f.word(c)
	}
	ch.mark = nil
}
