package reasoning

// Line tracks the code that a text is in.
type Line struct {
	fence mark // code block that is open
	lead  mark // first run of backticks or tildes
	span  int  // length of the backticks that opened a code span
	run   int  // backticks so far
	place place
	ticks bool // backticks behind the first run
}

type mark struct {
	char byte
	n    int
}

type place uint8

const (
	margin place = iota // blanks and the signs of quotes
	inLead
	behindLead // blanks
	body
)

const minFence = 3

// Add takes the next byte of the text.
func (l *Line) Add(c byte) {
	if c == '\n' {
		l.next()
		return
	}
	switch blank := c == ' ' || c == '\t' || c == '\r'; {
	case l.place == margin && (blank || c == '>'):
	case l.place == margin && (c == '`' || c == '~'):
		l.place, l.lead = inLead, mark{c, 1}
	case l.place == inLead && c == l.lead.char:
		l.lead.n++
	case blank && (l.place == inLead || l.place == behindLead):
		l.place = behindLead
	default:
		l.place = body
	}
	if c != '`' {
		l.endRun()
		return
	}
	l.run++
	l.ticks = l.ticks || l.place != inLead
}

func (l *Line) endRun() {
	switch {
	case l.run == 0:
	case l.span == 0:
		l.span = l.run
	case l.span == l.run:
		l.span = 0
	}
	l.run = 0
}

// A code span ends with its line, so that a single backtick has no effect beyond it.
func (l *Line) next() {
	fence := l.fence
	switch {
	case l.lead.n < minFence:
	case fence.n == 0 && (l.lead.char != '`' || !l.ticks):
		fence = l.lead
	case fence.char == l.lead.char && l.lead.n >= fence.n && l.place != body:
		fence = mark{}
	}
	*l = Line{fence: fence}
}

func (l *Line) blank() bool { return l.place == margin }

// InCode reports whether the next byte stands in code.
func (l *Line) InCode() bool {
	l.endRun()
	return l.fence.n > 0 || l.span > 0 || l.lead.n >= minFence
}
