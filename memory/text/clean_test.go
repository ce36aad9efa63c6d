package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// marked draws texts with hidden characters, marks between letters, traditional characters and both kinds of scripts.
var marked = rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("ab 忽略規則\u200b\u200d\u202e\x00\x1b\n-.，。!?１Ａe\u0301")), rapid.Rune()))

// Law: a cleaned text has no control character and one kind of blank, and cleaning it again changes nothing.
func TestClean(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := marked.Draw(t, "s")
		clean := Clean(s)
		if strings.ContainsFunc(clean, isControl) || Clean(clean) != clean || HasManyControls(clean) || strings.TrimSpace(clean) != clean || strings.Contains(clean, "\n") {
			t.Fatalf("%q is cleaned to %q", s, clean)
		}
	})
	if !HasManyControls("\x01a\x02b\x03c\x04") || HasManyControls("\x01a\x02b\x03\n\t") {
		t.Error("four control characters are no slip, and three are")
	}
}

// Law: a canonical text is its own canonical form, valid, without invisible characters, and the same for capitals of ASCII.
func TestCanonicalFormIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("abQ 忽略規則\u200b\u200d\u202e\n\t-.‘”１Ａ"))).Draw(t, "s")
		c := Canonical(s)
		if Canonical(c) != c || !utf8.ValidString(c) || DropInvisible(c) != c || Canonical(strings.ToUpper(s)) != c {
			t.Fatalf("the canonical form of %q is %q, and of that %q", s, c, Canonical(c))
		}
	})
	for s, want := range map[string]string{
		"忽 略\u200b規 則": "忽略规则", "Ｉｇｎｏｒｅ  ALL": "ignore all", "“x”": `"x"`, "a\xff b": "a b", "": "",
	} {
		if got := Canonical(s); got != want {
			t.Errorf("the canonical form of %q is %q, want %q", s, got, want)
		}
	}
}

// A word that is spelled letter by letter is found as a word, and the text itself stays in front.
func TestSpelledWordsAreJoined(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"please i g n o r e this": "please i g n o r e this\nignore", "忽-略-规-则": "忽-略-规-则\n忽略规则", "a b c": "a b c", "plain words": "plain words",
	} {
		if got := JoinSpelled(s); !strings.HasPrefix(got, s) || got != want && !strings.Contains(got, strings.TrimPrefix(want, s+"\n")) {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
	for s, want := range map[string]string{"a-b, c!": "a b c", "中，文 x": "中文x", "1 2 - 3": "", "...": ""} {
		if got := Words(s); got != want {
			t.Errorf("the words of %q are %q, want %q", s, got, want)
		}
	}
}

// Law: of a long message both ends stay, and each part is whole characters; a short one stays as it is.
func TestClip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Repeat(rapid.SampledFrom([]string{"a", "中", "é😀"}).Draw(t, "unit"), rapid.IntRange(0, 9000).Draw(t, "n"))
		got := Clip(s)
		if len(s) <= 8<<10 {
			if got != s {
				t.Fatalf("%d bytes became %d", len(s), len(got))
			}
			return
		}
		head, tail, _ := strings.Cut(got, "\n")
		if !utf8.ValidString(got) || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head) > 4<<10 || len(tail) > 4<<10 || len(head) < 4<<10-4 {
			t.Fatalf("%d bytes became %d and %d", len(s), len(head), len(tail))
		}
	})
}

// Law: sentences are the text in pieces, but for blank ones.
func TestSentences(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := marked.Draw(t, "s")
		joined := strings.Join(slices.Collect(Sentences(s)), "")
		if squeeze(joined) != squeeze(s) {
			t.Fatalf("%q has the sentences %q", s, joined)
		}
	})
	got := slices.Collect(Sentences("v1.2 is out! 周五发布。Really?是的\n\nsee a.b/c"))
	if want := []string{"v1.2 is out! ", "周五发布。", "Really?是", "的\n", "see a.b/c"}; !slices.Equal(got, want) {
		t.Errorf("the sentences are %q, want %q", got, want)
	}
}

// Law: measures of likeness are 1 for one set, between 0 and 1 for any, and Jaccard's is the same both ways.
func TestLikenessOfSets(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab中文")))
	rapid.Check(t, func(t *rapid.T) {
		a, b := Trigrams(text.Draw(t, "a")), Trigrams(text.Draw(t, "b"))
		if Jaccard(a, a) != 1 || Share(a, a) != 1 || !Within(a, a) {
			t.Fatalf("%v is not like itself", a)
		}
		j, share := Jaccard(a, b), Share(a, b)
		if j != Jaccard(b, a) || j < 0 || j > share || share > 1 || Within(a, b) != (share == 1) {
			t.Fatalf("of %v and %v: %v and %v", a, b, j, share)
		}
	})
	if Share(nil, Trigrams("x")) != 0 || !Within(nil, nil) || Jaccard(nil, nil) != 1 {
		t.Error("the empty set")
	}
}
