package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
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
