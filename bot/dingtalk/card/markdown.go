package card

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"ebb/bot/dingtalk/markdown"
)

// Final is a finished text as a card shows it.
//
// A card ignores a single newline: lines of a paragraph, of a quote and of a list item are joined with <br>. A table
// needs an empty line around it. Phones ignore HTML: it is escaped outside code, but for <br>. An open code block is
// closed.
func Final(text string) string {
	return render(markdown.Parse(clean(text)), false)
}

// Frame is an unfinished text as sound Markdown without a newline at the end. Open code and emphasis are closed.
// Syntax that would show as such, or as half of a table or link, is held back until it is whole. No later frame, nor
// [Final], takes words back. It takes time in proportion to the text.
func Frame(text string) string {
	return render(settled(clean(whole(text))), true)
}

// clean normalizes newlines, takes out invalid bytes, and keeps a text from mentioning everyone.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return markdown.Harmless(newlines.Replace(text))
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

// whole cuts off an incomplete character at the end.
func whole(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRuneInString(last) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// marks is a line with only the beginning of some syntax.
var marks = regexp.MustCompile("^(?:[-*+=_#~`|: \t]*|[0-9]{1,9}[.)]?)$")

// settled are the lines whose role further text can't change.
func settled(text string) []markdown.Line {
	lines, tail := markdown.ParseOpen(text)
	partial := tail != nil && (unsettled(tail) || mayBeRow(lines, tail))
	if tail != nil && !partial {
		return append(lines, *tail)
	}
	if n := len(lines); n > 0 && lines[n-1].InParagraph() && strings.HasPrefix(lines[n-1].Text, "|") {
		lines = lines[:n-1] // A table's head waits for the row of dashes.
	}
	return lines
}

// unsettled reports whether the last, unfinished line may change its role.
func unsettled(l *markdown.Line) bool {
	switch l.Kind {
	case markdown.Code:
		s := strings.TrimSpace(l.Text)
		return s == "" || strings.Trim(s, l.Fence.Mark[:1]) == ""
	case markdown.Indented:
		return false
	case markdown.Heading, markdown.Text, markdown.Continued:
		return strings.HasPrefix(l.Text, "|") || marks.MatchString(l.Text)
	}
	return true
}

// mayBeRow reports whether a pipe would make the last line a row. Tables with outer pipes end without one.
func mayBeRow(lines []markdown.Line, tail *markdown.Line) bool {
	if len(lines) == 0 || tail.Kind != markdown.Text {
		return false
	}
	above := &lines[len(lines)-1]
	return (above.Kind == markdown.TableRule || above.Kind == markdown.TableRow) && !strings.HasPrefix(lines[above.Head].Text, "|")
}

// open: the text goes on behind the lines.
func render(lines []markdown.Line, open bool) string {
	var w writer
	for i := 0; i < len(lines); {
		l := &lines[i]
		n := 1
		body := l.Text
		switch l.Kind {
		case markdown.Text, markdown.Continued:
			for i+n < len(lines) && lines[i+n].Kind == markdown.Continued {
				n++
			}
			body = paragraph(lines[i:i+n], open && i+n == len(lines))
		case markdown.Heading:
			body = inline(body, open && i+n == len(lines) && !strings.HasSuffix(l.Raw, "\n"))
		case markdown.TableHead, markdown.TableRow:
			body = row(body)
		}
		if body != "" || l.Kind == markdown.Code || !open || i+n < len(lines) {
			w.line(l, &lines[i+n-1], body)
		}
		i += n
	}
	return w.end()
}

// A card does not show a link definition.
var definition = regexp.MustCompile(`^\[[^\[\]]+\]:`)

// A fence beyond the bounds of package markdown would hide all that follows.
var overlong = regexp.MustCompile("^(?:```+[^`]*|~~~.*)(?:<br>|$)")

func paragraph(lines []markdown.Line, open bool) string {
	text := lines[0].Text
	if len(lines) > 1 {
		var b strings.Builder
		for i, l := range lines {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(l.Text)
		}
		text = b.String()
	}
	text = inline(text, open)
	if text == "<br>" { // alone in its line it would begin HTML
		return ""
	}
	if definition.MatchString(text) || overlong.MatchString(text) {
		text = `\` + text
	}
	return text
}

// Nothing but a break goes beyond a row's cell.
func row(text string) string {
	var b strings.Builder
	for i, cell := range markdown.Cells(text) {
		if i > 0 || strings.HasPrefix(text, "|") {
			b.WriteByte('|')
		}
		b.WriteString(inline(cell, false))
	}
	if strings.HasSuffix(text, "|") && !strings.HasSuffix(text, `\|`) {
		b.WriteByte('|')
	}
	return b.String()
}

// Between lines, writer puts the empty lines and the ends of code blocks that a card needs.
type writer struct {
	out  strings.Builder
	last *markdown.Line
}

func (w *writer) line(first, last *markdown.Line, body string) {
	if w.last != nil {
		if first.Kind != markdown.Code && first.Kind != markdown.FenceClose {
			w.closeFence()
		}
		if apart(w.last, first) {
			w.out.WriteString("\n" + strings.TrimRight(first.Inside, " "))
		}
		w.out.WriteByte('\n')
	}
	if body == "" {
		w.out.WriteString(strings.TrimRight(first.Prefix, " \t"))
	} else {
		w.out.WriteString(first.Prefix + body)
	}
	w.last = last
}

func apart(above, below *markdown.Line) bool {
	switch below.Kind {
	case markdown.TableHead:
		return above.InParagraph() && !below.Item
	case markdown.Rule:
		return above.InParagraph()
	case markdown.Text:
		return (above.Kind == markdown.TableRow || above.Kind == markdown.TableRule) && !below.Item
	}
	return false
}

func (w *writer) closeFence() {
	if w.last != nil && w.last.Fence.Mark != "" {
		w.out.WriteString("\n" + w.last.Inside + w.last.Fence.Mark)
	}
}

func (w *writer) end() string {
	w.closeFence()
	return strings.Trim(w.out.String(), "\n")
}
