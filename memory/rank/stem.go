package rank

import "strings"

// stem brings the forms of an English word together: "painting", "painted" and "paints" are one, and so are "went" and
// "go". It is M. F. Porter's algorithm of 1980 ("An algorithm for suffix stripping") after a list of irregular forms.
// Words that are not plain lower-case ASCII letters are left as they are.
func stem(word string) string {
	if base, ok := irregular[word]; ok {
		word = base
	}
	if len(word) < 3 {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	w := dropPlural(word)
	w = dropPastAndGerund(w)
	if n := len(w); n > 1 && w[n-1] == 'y' && hasVowel(w[:n-1]) {
		w = w[:n-1] + "i"
	}
	w = replaceSuffix(w, 0, longSuffixes)
	w = replaceSuffix(w, 0, middleSuffixes)
	w = replaceSuffix(w, 1, lastSuffixes)
	return tidy(w)
}

func dropPlural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"):
		return w
	case strings.HasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

// dropPastAndGerund removes -eed, -ed and -ing, and mends the rest: hop(p)ing, fil(e)ing.
func dropPastAndGerund(w string) string {
	if base, ok := strings.CutSuffix(w, "eed"); ok {
		if measure(base) > 0 {
			return base + "ee"
		}
		return w
	}
	base, ok := strings.CutSuffix(w, "ed")
	if !ok {
		base, ok = strings.CutSuffix(w, "ing")
	}
	if !ok || !hasVowel(base) {
		return w
	}
	n := len(base)
	switch {
	case strings.HasSuffix(base, "at"), strings.HasSuffix(base, "bl"), strings.HasSuffix(base, "iz"):
		return base + "e"
	case n > 1 && base[n-1] == base[n-2] && !isVowel(base, n-1) && !strings.ContainsRune("lsz", rune(base[n-1])):
		return base[:n-1]
	case measure(base) == 1 && shortEnd(base):
		return base + "e"
	}
	return base
}

type ending struct{ from, to string }

var longSuffixes = []ending{
	{"ational", "ate"},
	{"ization", "ize"},
	{"iveness", "ive"},
	{"fulness", "ful"},
	{"ousness", "ous"},
	{"tional", "tion"},
	{"biliti", "ble"},
	{"entli", "ent"},
	{"ousli", "ous"},
	{"ation", "ate"},
	{"alism", "al"},
	{"aliti", "al"},
	{"iviti", "ive"},
	{"enci", "ence"},
	{"anci", "ance"},
	{"izer", "ize"},
	{"abli", "able"},
	{"alli", "al"},
	{"ator", "ate"},
	{"eli", "e"},
}

var middleSuffixes = []ending{
	{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ness", ""}, {"ful", ""},
}

var lastSuffixes = []ending{
	{"ement", ""},
	{"ance", ""},
	{"ence", ""},
	{"able", ""},
	{"ible", ""},
	{"ment", ""},
	{"sion", "s"},
	{"tion", "t"},
	{"ant", ""},
	{"ent", ""},
	{"ism", ""},
	{"ate", ""},
	{"iti", ""},
	{"ous", ""},
	{"ive", ""},
	{"ize", ""},
	{"al", ""},
	{"er", ""},
	{"ic", ""},
	{"ou", ""},
}

// replaceSuffix replaces the first ending of the table that w has, if the part before it is long enough.
func replaceSuffix(w string, least int, table []ending) string {
	for _, e := range table {
		if base, ok := strings.CutSuffix(w, e.from); ok {
			if measure(base+e.to) > least {
				return base + e.to
			}
			return w
		}
	}
	return w
}

// tidy removes a last e, and one of two last l.
func tidy(w string) string {
	if base, ok := strings.CutSuffix(w, "e"); ok {
		if m := measure(base); m > 1 || m == 1 && !shortEnd(base) {
			w = base
		}
	}
	if strings.HasSuffix(w, "ll") && measure(w) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

func isVowel(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return i > 0 && !isVowel(w, i-1)
	}
	return false
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if isVowel(w, i) {
			return true
		}
	}
	return false
}

// measure counts the times that a consonant follows a vowel.
func measure(w string) int {
	n, before := 0, false
	for i := range len(w) {
		v := isVowel(w, i)
		if before && !v {
			n++
		}
		before = v
	}
	return n
}

// shortEnd reports whether w ends in consonant, vowel, consonant, the last of them not w, x or y.
func shortEnd(w string) bool {
	n := len(w)
	return n > 2 && !isVowel(w, n-3) && isVowel(w, n-2) && !isVowel(w, n-1) && !strings.ContainsRune("wxy", rune(w[n-1]))
}
