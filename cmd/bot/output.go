package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// printable replaces control characters other than newline and tab by "?". A model's answer or a nick could otherwise
// move the cursor, set the title or hide earlier text.
type printable struct {
	out  io.Writer
	lead bool // the last byte may begin a control character of two bytes, U+0080 to U+009F
}

// leadC1 is the first byte of U+0080 to U+00BF in UTF-8.
const leadC1 = 0xC2

// Write implements io.Writer. The count is that of p, regardless of replacements.
func (w *printable) Write(p []byte) (int, error) {
	text := make([]byte, 0, len(p)+1)
	for _, b := range p {
		switch {
		case w.lead && b >= 0x80 && b <= 0x9F:
			text = append(text, '?')
			w.lead = false
			continue
		case w.lead:
			text = append(text, leadC1)
			w.lead = false
		}
		switch {
		case b == leadC1:
			w.lead = true
		case b < ' ' && b != '\n' && b != '\t', b == 0x7F:
			text = append(text, '?')
		default:
			text = append(text, b)
		}
	}
	if _, err := w.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// table prints a table with an optional head, or one JSON object a line.
func table[T any](out io.Writer, asJSON bool, rows []T, head string, row func(T) string) error {
	if asJSON {
		enc := json.NewEncoder(out)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
		}
		return nil
	}
	return write(out, func(w io.Writer) {
		if head != "" {
			fmt.Fprintln(w, head)
		}
		for _, r := range rows {
			fmt.Fprintln(w, row(r))
		}
	})
}

func views[T, V any](all []T, view func(T) V) []V {
	out := make([]V, len(all))
	for i, x := range all {
		out[i] = view(x)
	}
	return out
}

func writeRows(out io.Writer, rows [][2]string) error {
	return write(out, func(w io.Writer) {
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\n", r[0], r[1])
		}
	})
}

// write aligns the cells of f's lines, which tabs end, by the columns that they take on a terminal.
func write(out io.Writer, f func(io.Writer)) error {
	var text strings.Builder
	f(&text)
	_, err := io.WriteString(out, alignColumns(text.String()))
	return err
}

// columnGap is the number of blanks behind the longest cell of a column.
const columnGap = 2

// columnsOf measures in any locale: a Chinese character takes two columns.
var columnsOf = &runewidth.Condition{StrictEmojiNeutral: true}

// alignColumns pads all cells but the last one of a line.
func alignColumns(text string) string {
	lines := strings.SplitAfter(text, "\n")
	var widths []int
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		for i, cell := range cells[:len(cells)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columnsOf.StringWidth(cell)+columnGap)
		}
	}
	var out strings.Builder
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		for i, cell := range cells[:len(cells)-1] {
			out.WriteString(columnsOf.FillRight(cell, widths[i]))
		}
		out.WriteString(cells[len(cells)-1])
	}
	return out.String()
}

// clock formats times in agent.timezone, like the bot in chats.
type clock struct{ zone *time.Location }

func (c clock) head(name string) string { return fmt.Sprintf("%s (%s)", name, c.zone) }

func (c clock) cell(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(c.zone).Format("2006-01-02 15:04:05")
}

func (c clock) full(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return c.cell(t) + " " + c.zone.String()
}

// The cause stands at the end of an error.
func lastCause(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if rs := []rune(s); len(rs) > 120 {
		s = "…" + string(rs[len(rs)-120:])
	}
	return s
}

func excerpt(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if rs := []rune(s); len(rs) > 80 {
		s = string(rs[:80]) + "…"
	}
	return s
}
