package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ebb/memory/text"
	"ebb/sql/pg"
)

// For any query, patterns hold no sign that a pattern would read.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"上海预算 budget", "%_\\", "ord-2041", "ＡＢＣ", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		terms := termsOf(pg.Clean(s))
		if len(terms) > maxTerms {
			t.Errorf("%q has %d terms", s, len(terms))
		}
		for _, p := range patternsOf(terms) {
			inner := strings.TrimSuffix(strings.TrimPrefix(p, "%"), "%")
			if inner == "" || strings.ContainsAny(inner, `%_\`) || !utf8.ValidString(inner) {
				t.Errorf("%q gives the pattern %q", s, p)
			}
		}
		for _, term := range terms {
			if !strings.Contains(text.Fold(pg.Clean(s)), term) {
				t.Errorf("%q does not hold its own term %q", s, term)
			}
		}
	})
}
