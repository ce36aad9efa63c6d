package markdown

// Kind is the role of a line.
type Kind uint8

const (
	Blank     Kind = iota
	Text           // first line of a paragraph
	Continued      // further line of a paragraph
	Heading
	Rule      // thematic break
	Underline // row of = that makes the paragraph above it a heading
	FenceOpen
	Code // line in a fence
	FenceClose
	Indented // line of an indented code block
	TableHead
	TableRule // row of dashes below a table's head
	TableRow
)

// A longer marker, a longer info string and a deeper container are text.
const (
	maxMark  = 16
	maxInfo  = 64
	maxDepth = 12
)

// Fence is an open code block. The zero value is none.
type Fence struct{ Mark, Info string }

// Line is a line with its role.
type Line struct {
	Kind Kind
	Item bool // the line begins a list item
	// Raw is the line with its newline; Start is its offset in the text.
	Raw   string
	Start int
	// Prefix are the markers and the indentation before Text, which has no newline, and no outer blanks except in
	// code.
	Prefix, Text string
	// Inside is the prefix of a further line in the same quotes and list items.
	Inside string
	// Fence is open after the line.
	Fence Fence
	// Head is the index of a row's table head.
	Head int
}

// InParagraph reports whether the line is text of a paragraph.
func (l *Line) InParagraph() bool { return l.Kind == Text || l.Kind == Continued }
