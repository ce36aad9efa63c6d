package sql

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Facts that differ in a way that means something must not be taken for one.
func TestNormal(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"预算是 1.5 万。", "预算是1.5万", "预算是１.５万！"},
		{"Zhang San owns billing", "zhang san  owns billing.", "“Zhang San” owns billing!"},
		{"Deploy at 12:30, please", "deploy at 12:30 please"},
		{"使用 Redis 缓存", "使用Redis缓存"},
	} {
		for _, s := range same[1:] {
			if normal(s) != normal(same[0]) {
				t.Errorf("%q and %q are told apart: %q, %q", same[0], s, normal(same[0]), normal(s))
			}
		}
	}
	for _, pair := range [][2]string{
		{"1.5", "15"}, {"C#", "C"}, {"C++", "C"}, {"-3", "3"}, {"5%", "5"}, {"12:30", "1230"}, {"ab c", "a bc"}, {"a_b", "ab"}, {"1,000", "1000"},
	} {
		if normal(pair[0]) == normal(pair[1]) {
			t.Errorf("%q and %q are taken for one", pair[0], pair[1])
		}
	}
}

func FuzzNormal(f *testing.F) {
	for _, s := range []string{"预算是 1.5 万。", "Zhang “San”", "a\x00b", "\xff", "  ", "ﬃ", "...1.2.3", "don't"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := normal(clean(s))
		if !utf8.ValidString(n) || strings.ContainsRune(n, 0) {
			t.Errorf("normal(%q) = %q, which a database cannot hold", s, n)
		}
		if spaced := normal("  " + clean(s) + "\n"); spaced != n {
			t.Errorf("white space around %q changed %q to %q", s, n, spaced)
		}
	})
}

// Whatever somebody searches for, patterns hold no sign that a pattern would read.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"上海预算 budget", "%_\\", "ord-2041", "ＡＢＣ", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		terms := termsOf(clean(s))
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
			if !strings.Contains(fold(clean(s)), term) {
				t.Errorf("%q does not hold its own term %q", s, term)
			}
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\x00b\xff", `\u0000`)
	f.Fuzz(func(t *testing.T, s, other string) {
		b, err := cleanJSON(map[string]any{s: []any{other, s}})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); strings.Contains(strings.ReplaceAll(text, `\\`, ""), `\u0000`) {
			t.Errorf("%q and %q give %s, which PostgreSQL refuses", s, other, text)
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && clean(s) != s {
			t.Errorf("clean changed the harmless %q", s)
		}
	})
}
