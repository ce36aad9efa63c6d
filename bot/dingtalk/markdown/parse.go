package markdown

import "strings"

// Parse gives each line its role by the rules of CommonMark and of GitHub's tables, in one pass. Models mean two
// rules differently: a row of dashes below a paragraph is a thematic break, and a table with outer pipes ends at a
// line without one. HTML is text.
func Parse(text string) []Line {
	lines, _ := parse(text)
	return lines
}

// ParseOpen parses a text that still grows. tail is its last line without a newline, or nil.
func ParseOpen(text string) (lines []Line, tail *Line) {
	end := strings.LastIndexByte(text, '\n') + 1
	lines, p := parse(text[:end])
	if end == len(text) {
		return lines, nil
	}
	l := p.line(text[end:])
	l.Start = end
	return lines, &l
}

func parse(text string) ([]Line, *parser) {
	p := &parser{}
	lines := make([]Line, 0, strings.Count(text, "\n")+1)
	head := 0
	start := 0
	for raw := range strings.Lines(text) {
		l := p.line(raw)
		l.Start = start
		if l.Kind == TableRule {
			head = len(lines) - 1
			lines[head].Kind = TableHead
		}
		l.Head = head
		lines = append(lines, l)
		start += len(raw)
	}
	return lines, p
}

type parser struct {
	stack  []container
	inside string // prefix of a further line in the stack
	para   bool
	head   string // last line of the paragraph, which may be a table's head
	fence  Fence
	table  table
}

// A container is a quote or, with a width, a list item whose content begins after these columns.
type container struct{ width int }

type table uint8

const (
	noTable table = iota
	piped         // rows begin with a pipe
	bare          // rows have a pipe somewhere
)

// line also changes the state for the line after it.
func (p *parser) line(raw string) Line {
	s := strings.TrimRight(raw, "\r\n")
	n, at := p.match(s)
	l := Line{Raw: raw}
	if p.fence.Mark != "" {
		if n == len(p.stack) {
			p.code(&l, s, at)
			return l
		}
		p.fence = Fence{}
	}
	whole := n == len(p.stack)
	opened, at := p.open(&l, s, n, at)
	rest := s[at:]
	w, b := indent(rest)
	body := strings.TrimRight(rest[b:], " \t")
	within := whole && !opened // the line goes on in the containers of the line before it
	kind := p.leaf(body, w, within, !opened)
	if kind == Continued && !opened {
		n = len(p.stack) // also where it is lazy
	}
	if !opened && n < len(p.stack) {
		p.truncate(n)
	}
	l.Kind, l.Prefix, l.Text = kind, s[:at+b], body
	switch kind {
	case Indented:
		l.Prefix, l.Text = s[:at], rest
	case Heading:
		marker := len(body) - len(strings.TrimLeft(body, "#"))
		title := strings.TrimLeft(body[marker:], " \t")
		l.Prefix, l.Text = s[:len(s)-len(rest)+b+marker]+" ", title
	case FenceOpen:
		p.fence = fenceOf(body)
	case TableRule:
		p.table = bare
		if strings.HasPrefix(p.head, "|") {
			p.table = piped
		}
	}
	if kind != TableRule && kind != TableRow {
		p.table = noTable
	}
	p.para = kind == Text || kind == Continued
	p.head = ""
	if p.para && (within || kind == Text) {
		p.head = body
	}
	l.Inside, l.Fence = p.inside, p.fence
	return l
}

func (p *parser) code(l *Line, s string, at int) {
	rest := s[at:]
	l.Kind, l.Prefix, l.Text, l.Inside = Code, s[:at], rest, p.inside
	w, b := indent(rest)
	mark := rest[b:]
	n := run(mark, p.fence.Mark[0])
	if w < 4 && n >= len(p.fence.Mark) && n <= maxMark && strings.TrimSpace(mark[n:]) == "" {
		l.Kind, p.fence = FenceClose, Fence{}
	}
	l.Fence = p.fence
}

// match counts the containers that go on in a line, and the bytes of their markers.
func (p *parser) match(s string) (n, at int) {
	for _, c := range p.stack {
		rest := s[at:]
		w, b := indent(rest)
		switch {
		case c.width == 0:
			if w > 3 || b == len(rest) || rest[b] != '>' {
				return n, at
			}
			at = afterBlank(s, at+b+1)
		case b == len(rest):
		case w >= c.width:
			at += columns(rest, c.width)
		default:
			return n, at
		}
		n++
	}
	return n, at
}

// open also closes containers that ended before the line.
func (p *parser) open(l *Line, s string, n, at int) (opened bool, end int) {
	interrupts := p.para && n == len(p.stack)
	for len(p.stack) < maxDepth || !opened && n < maxDepth {
		rest := s[at:]
		w, b := indent(rest)
		body := rest[b:]
		if body == "" || w > 3 {
			break
		}
		c := container{}
		if body[0] == '>' {
			at = afterBlank(s, at+b+1)
		} else {
			k := marker(body)
			if k == 0 || isRule(strings.TrimRight(body, " \t")) || interrupts && !opened && !mayInterrupt(body, k) {
				break
			}
			sw, sb := indent(body[k:])
			if sb == len(body[k:]) || sw > 4 {
				sw, sb = 1, min(sb, 1)
			}
			c.width = w + k + sw
			at += b + k + sb
			l.Item = true
		}
		if !opened {
			p.truncate(n)
		}
		opened = true
		p.push(c)
	}
	return opened, at
}

func (p *parser) push(c container) {
	p.stack = append(p.stack, c)
	if c.width == 0 {
		p.inside += "> "
	} else {
		p.inside += strings.Repeat(" ", c.width)
	}
}

func (p *parser) truncate(n int) {
	stack := p.stack[:n]
	p.stack, p.inside = p.stack[:0], ""
	for _, c := range stack {
		p.push(c)
	}
}

// leaf is the role of a line without its containers. within: its containers are those of the line before. lazy: it
// opens none.
func (p *parser) leaf(body string, w int, within, lazy bool) Kind {
	para := p.para && within
	switch {
	case body == "":
		return Blank
	case w > 3:
		if p.para && lazy {
			return Continued
		}
		return Indented
	case isRule(body):
		return Rule
	case para && run(body, '=') == len(body):
		return Underline
	case isHeading(body):
		return Heading
	case fenceOf(body).Mark != "":
		return FenceOpen
	case para && p.head != "" && isTableRule(body) && cells(body) == cells(p.head) && strings.Contains(p.head, "|"):
		return TableRule
	case within && p.table == piped && body[0] == '|', within && p.table == bare && strings.Contains(body, "|"):
		return TableRow
	case p.para && lazy:
		return Continued
	}
	return Text
}
