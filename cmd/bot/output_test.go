package main

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"

	"ebb/sessions"
	"ebb/sql/spend"
)

func TestPrintableTextHasNoControlSequences(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("a好\n\t\r\x1b\x07\x00\x7f\u0085\u009b\u00a0\u00e9é]0;"))).Draw(t, "text")
		var out bytes.Buffer
		w := &printable{out: &out}
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", got, n, err)
			}
			rest = rest[n:]
		}
		want := strings.Map(func(r rune) rune {
			if r == '\n' || r == '\t' || r >= ' ' && r < 0x7f || r >= 0xa0 {
				return r
			}
			return '?'
		}, text)
		if out.String() != want || !utf8.Valid(out.Bytes()) {
			t.Fatalf("%q is printed as %q, want %q", text, out.String(), want)
		}
	})
}

// Columns are aligned as a terminal shows them, whatever script their cells are in.
func TestTablesAreAlignedOnScreen(t *testing.T) {
	t.Parallel()
	rows := [][2]string{{"Checkout on-call", "first"}, {"结算值班群", "second"}, {"カート", "third"}, {"e\u0301t\u00e9 👍", "fourth"}, {"", "fifth"}, {"值班", "第六 列 sixth"}}
	var out bytes.Buffer
	if err := writeRows(&out, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(rows) {
		t.Fatalf("%d lines of %d rows:\n%s", len(lines), len(rows), &out)
	}
	for i, line := range lines {
		before, found := strings.CutSuffix(line, rows[i][1])
		if width := runewidth.StringWidth(before); !found || width != len("Checkout on-call")+2 {
			t.Errorf("the second cell of %q begins in column %d", line, width)
		}
	}
}

// Rows of several lines, and rows without a second cell, leave the other columns where they are.
func TestTablesKeepLinesWithoutCells(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := write(&out, func(w io.Writer) { fmt.Fprint(w, "id\t1\nfact\tone\nline two\nstate\tkept\n") }); err != nil {
		t.Fatal(err)
	}
	if want := "id     1\nfact   one\nline two\nstate  kept\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// A conversation's costs are those of all its members' sessions.
func TestConversationsAreSummed(t *testing.T) {
	t.Parallel()
	cost := func(key sessions.Key, kind sessions.SpentKind, turns, prompt int, price float64) spend.Cost {
		return spend.Cost{Key: key, Turns: turns, Spending: sessions.Spending{Kind: kind, Usage: sessions.Usage{Prompt: prompt, Completion: 1}, Cost: price}}
	}
	got := sumConversations([]spend.Cost{
		cost("r/a/u1", "turn", 1, 10, 0.5), cost("r/b", "turn", 2, 20, 1), cost("r/a/u2", "turn", 3, 30, 0.25), cost("r/a/u2", "flush", 0, 5, 0),
	})
	want := []spend.Cost{cost("r/a", "turn", 4, 40, 0.75), cost("r/b", "turn", 2, 20, 1), cost("r/a", "flush", 0, 5, 0)}
	want[0].Usage.Completion = 2
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
