package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func FuzzSplit(f *testing.F) {
	f.Add("a. b", 3)
	f.Add(strings.Repeat("中。", 50), 7)
	f.Add("", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > 1000 || !utf8.ValidString(text) {
			return
		}
		var joined string
		for _, p := range Split(text, limit) {
			if utf8.RuneCountInString(p) > limit {
				t.Fatalf("part %q is longer than %d", p, limit)
			}
			joined += p
		}
		if squeeze(joined) != squeeze(text) {
			t.Fatalf("%q became %q", text, joined)
		}
	})
}
