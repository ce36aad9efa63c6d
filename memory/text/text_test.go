package text

import (
	"slices"
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
		{"ask zoe now", "zoe", true},
		{"zoeys and zoe", "zoe", true},
		{"zoeys", "zoe", false},
		{"问问张伟吧", "张伟", true},
		{"张伟zoe", "zoe", true},
		{"a2", "a", false},
		{"", "a", false},
		{"a", "", false},
		{"last  week", "last", true},
		{"e\u0301", "e", false},
	} {
		if got := ContainsWord(c.text, c.word); got != c.want {
			t.Errorf("ContainsWord(%q, %q) = %v", c.text, c.word, got)
		}
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"redis端口是6380": "redis|*端口是|6380", "prod-db-01 at 10.0.3.7.": "prod-db-01|at|10.0.3.7", "don't a- -b": "don't|a|b",
		"a中": "a|*中", "周三:会": "*周三|*会", "": "", "...": "", "e\u0301te": "e\u0301te",
	} {
		var got []string
		for _, r := range Runs(text) {
			if string([]rune(text)[r.At:r.At+len([]rune(r.Text))]) != r.Text {
				t.Errorf("%q: %q is not at %d", text, r.Text, r.At)
			}
			if r.Wide {
				r.Text = "*" + r.Text
			}
			got = append(got, r.Text)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("Runs(%q) = %q, want %q", text, got, want)
		}
	}
	if got := strings.Join(Parts("a@b-c_d.1"), " "); got != "a b c d 1" {
		t.Errorf("the parts are %q", got)
	}
}

func TestAtoms(t *testing.T) {
	t.Parallel()
	var got []string
	EachAtom("Locker 48,213 of OPS-4711: 周会, deployed １２!", func(atom []byte) { got = append(got, string(atom)) })
	want := []string{"locker", "48213", "of", "op", "4711", "", "周", "会", "", "deploy", "12", ""}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
