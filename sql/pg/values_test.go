package pg

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzClean(f *testing.F) {
	f.Add("a\x00b\xff", `\u0000`)
	f.Fuzz(func(t *testing.T, s, other string) {
		b, err := CleanJSON(map[string]any{s: []any{other, s}})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); strings.Contains(strings.ReplaceAll(text, `\\`, ""), `\u0000`) {
			t.Errorf("%q and %q give %s, which PostgreSQL refuses", s, other, text)
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && Clean(s) != s {
			t.Errorf("clean changed the harmless %q", s)
		}
	})
}
