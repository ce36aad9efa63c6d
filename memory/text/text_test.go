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

func TestContainsWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, word string
		want       bool
	}{
		{"ask zoe now", "zoe", true}, {"zoeys and zoe", "zoe", true}, {"zoeys", "zoe", false}, {"问问张伟吧", "张伟", true}, {"张伟zoe", "zoe", true},
		{"a2", "a", false}, {"", "a", false}, {"a", "", false}, {"last  week", "last", true}, {"e\u0301", "e", false},
	} {
		if got := ContainsWord(c.text, c.word); got != c.want {
			t.Errorf("ContainsWord(%q, %q) = %v", c.text, c.word, got)
		}
	}
}
