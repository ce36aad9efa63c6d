package sendfile

import (
	"regexp"
	"strings"
)

// Table is a Markdown table that is too long for a chat.
type Table struct {
	Title string // heading before it; empty: none
	Rows  [][]string
	// From and Through are its lines in the text. Shown is the last line of the preview.
	From, Through, Shown int
}

// A longer table is shown in part.
const (
	maxTableRows  = 30
	maxTableCells = 240
	PreviewRows   = 10
)

var (
	rule    = regexp.MustCompile(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	fence   = regexp.MustCompile("^ {0,3}(?:```+|~~~+)")
	heading = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$`)
	breaks  = regexp.MustCompile(`(?i)<br[ ]*/?>`)
)

// LongTables lists the long tables of a text, by its lines. A table in a block of code is none.
func LongTables(lines []string) (tables []Table) {
	title, open := "", ""
	for i := 0; i < len(lines); i++ {
		if mark := strings.TrimSpace(fence.FindString(lines[i])); mark != "" && (open == "" || strings.HasPrefix(mark, open)) {
			if open == "" {
				open = mark
			} else {
				open = ""
			}
			continue
		}
		if open != "" {
			continue
		}
		if m := heading.FindStringSubmatch(lines[i]); m != nil {
			title = plain(m[1])
		}
		if i+1 == len(lines) || !strings.Contains(lines[i], "|") || !rule.MatchString(lines[i+1]) || !strings.Contains(lines[i+1], "|") {
			continue
		}
		t := Table{Title: title, From: i, Rows: [][]string{cellTexts(lines[i])}}
		for i += 2; i < len(lines) && strings.Contains(lines[i], "|"); i++ {
			t.Rows = append(t.Rows, cellTexts(lines[i]))
		}
		i--
		t.Through, t.Shown = i, t.From+1+PreviewRows
		if n := len(t.Rows) - 1; n > maxTableRows || n > PreviewRows && n*len(t.Rows[0]) > maxTableCells {
			tables = append(tables, t)
		}
	}
	return tables
}

// cellTexts are the cells of a row without their Markdown.
func cellTexts(line string) []string {
	const pipe = "\x00" // no text of the log has it
	line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, pipe)
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i, c := range cells {
		cells[i] = plain(strings.ReplaceAll(c, pipe, "|"))
	}
	return cells
}

func plain(text string) string {
	text = breaks.ReplaceAllString(strings.TrimSpace(text), "\n")
	for _, mark := range []string{"**", "__", "`"} {
		if len(text) >= 2*len(mark) && strings.HasPrefix(text, mark) && strings.HasSuffix(text, mark) {
			text = strings.TrimSpace(text[len(mark) : len(text)-len(mark)])
		}
	}
	return text
}
