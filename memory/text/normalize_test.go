package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Facts that differ in a way that means something must not be taken for one.
func TestNormalize(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"预算是 1.5 万。", "预算是1.5万", "预算是１.５万！"},
		{"Zhang San owns billing", "zhang san  owns billing.", "“Zhang San” owns billing!"},
		{"Deploy at 12:30, please", "deploy at 12:30 please"},
		{"使用 Redis 缓存", "使用Redis缓存"},
	} {
		for _, s := range same[1:] {
			if Normalize(s) != Normalize(same[0]) {
				t.Errorf("%q and %q differ: %q, %q", same[0], s, Normalize(same[0]), Normalize(s))
			}
		}
	}
	for _, pair := range [][2]string{
		{"1.5", "15"}, {"C#", "C"}, {"C++", "C"}, {"-3", "3"}, {"5%", "5"}, {"12:30", "1230"}, {"ab c", "a bc"}, {"a_b", "ab"}, {"1,000", "1000"},
	} {
		if Normalize(pair[0]) == Normalize(pair[1]) {
			t.Errorf("%q and %q are taken for one", pair[0], pair[1])
		}
	}
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"预算是 1.5 万。", "Zhang “San”", "a\x00b", "\xff", "  ", "ﬃ", "...1.2.3", "don't"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
		n := Normalize(s)
		if !utf8.ValidString(n) || strings.ContainsRune(n, 0) {
			t.Errorf("normal(%q) = %q, which a database cannot hold", s, n)
		}
		if spaced := Normalize("  " + s + "\n"); spaced != n {
			t.Errorf("white space around %q changed %q to %q", s, n, spaced)
		}
	})
}
