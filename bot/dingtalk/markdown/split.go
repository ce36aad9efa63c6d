package markdown

import (
	"strings"
	"unicode/utf8"
)

// Piece is a part of a text. Open and Close keep it sound on its own: they open and close a code block, and repeat a
// table's head. First is the role of the first line.
type Piece struct {
	Open, Body, Close string
	First             Kind
}

// Text is the piece as it is sent.
func (p Piece) Text() string { return p.Open + p.Body + p.Close }

// Size measures a character of n bytes. An invalid byte is a [utf8.RuneError] of one byte.
type Size func(r rune, n int) int

// Budget is the most of a piece. The limit is at least 1,000: the repeated parts have room in it several times.
type Budget struct {
	Limit int
	Size  Size
}

// Split cuts a text into a piece within one budget, and further pieces within another. It prefers to cut between paragraphs, then list
// items, then lines and rows, then words. It never cuts a character, a heading from its text, or a table's head from its first row.
// The joined bodies are the text.
//
// As a text grows, all pieces but the last stay as they are. It takes time in proportion to the text.
func Split(text string, first, further Budget) []Piece {
	s := splitter{lines: Parse(text), text: text, Budget: first}
	var out []Piece
	for at := (place{}); at.line < len(s.lines); s.Budget = further {
		var p Piece
		p, at = s.piece(at)
		out = append(out, p)
	}
	return out
}

type splitter struct {
	Budget
	lines []Line
	text  string
}

// The offset is within the line.
type place struct{ line, offset int }

type border struct {
	line, used int
}

// Better kinds of borders come later.
const (
	inCode = iota
	betweenLines
	betweenItems
	betweenParagraphs
	kinds
)

func (s *splitter) piece(from place) (Piece, place) {
	open := s.reopen(from)
	room := s.Limit - s.measure(open)
	to := s.cut(from, room)
	p := Piece{First: s.lines[from.line].Kind, Open: open, Body: s.text[s.pos(from):s.pos(to)]}
	if l := s.lineBefore(to); l.Fence.Mark != "" {
		p.Close = closing(l)
		if strings.HasSuffix(p.Body, "\n") {
			p.Close = p.Close[1:]
		}
	}
	return p, to
}

func (s *splitter) pos(at place) int {
	if at.line == len(s.lines) {
		return len(s.text)
	}
	return s.lines[at.line].Start + at.offset
}

func (s *splitter) lineBefore(at place) *Line {
	if at.offset > 0 {
		return &s.lines[at.line]
	}
	return &s.lines[at.line-1]
}

func (s *splitter) reopen(at place) string {
	l := &s.lines[at.line]
	switch {
	case at.line == 0 && at.offset == 0:
	case l.Kind == Code, l.Kind == FenceClose && at.offset == 0:
		f := s.lines[at.line-1].Fence
		return l.Inside + f.Mark + f.Info + "\n"
	case l.Kind == TableRow && at.offset == 0:
		head := s.lines[l.Head].Inside + s.lines[l.Head].Text + "\n" + s.lines[l.Head+1].Raw
		if s.measure(head) <= s.Limit/3 {
			return head
		}
	}
	return ""
}

func closing(l *Line) string {
	if l.Fence.Mark == "" {
		return ""
	}
	return "\n" + l.Inside + l.Fence.Mark
}

// A piece has room for the end of its code block.
func (s *splitter) cut(from place, room int) place {
	var best [kinds]border
	used := 0
	headed := false // a heading precedes
	for i := from.line; i < len(s.lines); i++ {
		l := &s.lines[i]
		raw, first := l.Raw, i == from.line
		if first {
			raw = raw[from.offset:]
		}
		left := room - used - s.measure(closing(l))
		n, whole := s.within(raw, left)
		if !first && !headed && l.Kind != FenceClose && !mayBeHead(&s.lines[i-1]) {
			best[s.rank(i, whole)] = border{i, used}
		}
		if !whole {
			return s.choose(best, room, from, i, raw, left)
		}
		headed = l.Kind == Heading || headed && l.Kind == Blank
		used += n
	}
	return place{line: len(s.lines)}
}

func mayBeHead(l *Line) bool {
	return l.Kind == TableHead || l.Kind == TableRule || l.InParagraph() && strings.Contains(l.Text, "|")
}

// A line that is not whole may turn out to be something else.
func (s *splitter) rank(i int, whole bool) int {
	l, before := &s.lines[i], &s.lines[i-1]
	switch {
	case before.Fence.Mark != "":
		return inCode
	case before.Kind == Blank, before.Kind == FenceClose, whole && (l.Kind == FenceOpen || l.Kind == Heading):
		return betweenParagraphs
	case whole && l.Item:
		return betweenItems
	}
	return betweenLines
}

// choose takes the best border that does not leave a piece mostly empty, else cuts the line.
func (s *splitter) choose(best [kinds]border, room int, from place, i int, raw string, left int) place {
	for k := kinds - 1; k >= 0; k-- {
		if b := best[k]; b.line > 0 && b.used >= room/3 {
			return place{line: b.line}
		}
	}
	first := i == from.line
	n := s.cutLine(raw, left, first)
	switch {
	case n == 0:
		return place{line: i}
	case n == len(raw):
		return place{line: i + 1}
	case first:
		n += from.offset
	}
	return place{i, n}
}

// cutLine returns the bytes of a line that fit, back to a near end of a word. must takes at least one character.
func (s *splitter) cutLine(line string, room int, must bool) int {
	used, n := 0, 0
	for n < len(line) {
		r, size := utf8.DecodeRuneInString(line[n:])
		w := s.Size(r, size)
		if used+w > room && (n > 0 || !must) {
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

func (s *splitter) measure(text string) int {
	n := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		n += s.Size(r, size)
		i += size
	}
	return n
}

// The bound keeps a long line from being measured again for each piece.
func (s *splitter) within(text string, bound int) (n int, whole bool) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		n += s.Size(r, size)
		if n > bound {
			return n, false
		}
		i += size
	}
	return n, bound >= 0
}
