package markdown

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// someText draws a text of blocks that open, go on, and end.
func someText() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{
		"\n", "\n\n", "# title\n", "words\n", "words", "- item\n", "  1. item\n", "> quote\n", "```go\n", "```\n", "    code\n", "| a | b |\n", "|---|:-:|\n",
		"| 1 | \\| |\n", "a | b\n", "---|---\n", "===\n", "***\n", "\t", " ", "\r\n", "长文", "`", "\\", "|",
	})
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 0, 30).Draw(t, "parts"), "") })
}

func TestKindsOfLines(t *testing.T) {
	t.Parallel()
	names := []string{"blank", "text", "more", "heading", "rule", "underline", "open", "code", "close", "indented", "head", "dashes", "row"}
	for text, want := range map[string]string{
		"a\nb\n\nc":                         "text more blank text",
		"a\n===\nb\n---\nc":                 "text underline text rule text",
		"# a\n#b\n###### c\n####### d":      "heading text heading text",
		"```go\n# a\n\n```\nb":              "open code code close text",
		"````\n```\n````":                   "open code close",
		"~~~\n```\n~~~":                     "open code close",
		"```a`b\nc":                         "text more",
		"    a\n\n    b":                    "indented blank indented",
		"a\n    b":                          "text more",
		"| a | b |\n|---|---|\n| c |\nd":    "head dashes row text",
		"a | b\n---|---\nc | d\ne":          "head dashes row text",
		"| a | b |\n|---|\n| c | d |":       "text more more",
		"a\n|---|":                          "text more",
		"a | b\n---|---\n\nc | d":           "head dashes blank text",
		"> a\nb\n\nc":                       "text more blank text",
		"> ```\n> a\nb":                     "open code text",
		"- a\n  b\n- c":                     "text more text",
		"a\n1. b":                           "text text",
		"a\n2. b":                           "text more",
		"- ```\n  a\n  ```\n- b":            "open code close text",
		"* * *\n- - -\n___":                 "rule rule rule",
		"> | a | b |\n> |---|---|\n> | c |": "head dashes row",
		strings.Repeat("`", 17) + "\na":     "text more",
		"```" + strings.Repeat("i", 65):     "text",
	} {
		var got []string
		for _, l := range Parse(text) {
			got = append(got, names[l.Kind])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is %s, want %s", text, strings.Join(got, " "), want)
		}
	}
}

// The lines are the text, each at its place. A row names the head of its table.
func TestLinesAreTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, at := someText().Draw(t, "text"), 0
		lines := Parse(text)
		for i, l := range lines {
			if l.Start != at || !strings.HasPrefix(text[at:], l.Raw) || !strings.Contains(l.Raw, l.Text) {
				t.Fatalf("line %d of %q: %+v", i, text, l)
			}
			if (l.Kind == TableRow || l.Kind == TableRule) && (l.Head >= i || lines[l.Head].Kind != TableHead) {
				t.Fatalf("line %d of %q has its head at %d", i, text, l.Head)
			}
			if (l.Kind == Code || l.Kind == FenceOpen) != (l.Fence.Mark != "") {
				t.Fatalf("line %d of %q is %+v", i, text, l)
			}
			at += len(l.Raw)
		}
		if at != len(text) {
			t.Fatalf("%d of %d bytes of %q", at, len(text), text)
		}
	})
}

// A text that grows has the lines of the whole text, and its last line apart while it is not complete.
func TestOpenLinesAreThoseOfTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := someText().Draw(t, "text")
		lines, tail := ParseOpen(text)
		end := strings.LastIndexByte(text, '\n') + 1
		if whole := Parse(text[:end]); !slices.Equal(lines, whole) {
			t.Fatalf("%q has %+v, want %+v", text, lines, whole)
		}
		if (tail == nil) != (end == len(text)) || tail != nil && (tail.Start != end || tail.Raw != text[end:]) {
			t.Fatalf("%q ends in %+v", text, tail)
		}
	})
}

// Cells that are joined by pipes are those cells. A pipe behind a backslash is in its cell.
func TestCells(t *testing.T) {
	t.Parallel()
	cell := rapid.StringMatching(`(?:[a-z长 ]|\\\||\\\\){0,6}x`)
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(cell, 1, 6).Draw(t, "cells")
		for _, row := range []string{"|" + strings.Join(cells, "|") + "|", "|" + strings.Join(cells, "|"), "  |" + strings.Join(cells, "|") + "| "} {
			if got := Cells(row); !slices.Equal(got, cells) {
				t.Fatalf("%q has the cells %q", row, got)
			}
		}
	})
}

// Each piece of a long table begins with the head of the table, and no row is lost or cut.
func TestPiecesRepeatTheHead(t *testing.T) {
	t.Parallel()
	for _, inside := range []string{"", "> ", "  "} {
		head := inside + "| name | count |\n" + inside + "|---|---:|\n"
		text := head
		for i := range 200 {
			text += fmt.Sprintf("%s| row %d | %d |\n", inside, i, i*i)
		}
		rows := 0
		for i, p := range checkSplit(t, text, 1000) {
			lines := Parse(p.Text())
			if lines[0].Kind != TableHead || lines[1].Kind != TableRule || i > 0 && strings.TrimSpace(p.Open) != strings.TrimSpace(head) {
				t.Errorf("piece %d begins with %q, opened by %q", i, lines[0].Raw, p.Open)
			}
			rows += len(lines) - 2
		}
		if rows != 200 {
			t.Errorf("%d rows behind %q", rows, inside)
		}
	}
}
