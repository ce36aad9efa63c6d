package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Normalize makes equal statements equal: case, width, white space and punctuation do not count. Marks with a meaning
// stay: 1.5 is not 15, C# is not C, -3 is not 3.
func Normalize(content string) string {
	runes := []rune(Fold(content))
	var b strings.Builder
	space, last := false, rune(0)
	for i, r := range runes {
		if unicode.IsSpace(r) || isSentenceMark(runes, i) {
			space = true
			continue
		}
		// Between Latin words white space counts, if only as one blank; beside a Chinese character it never does.
		if space && last != 0 && r < unicode.MaxLatin1 && last < unicode.MaxLatin1 {
			b.WriteByte(' ')
		}
		space, last = false, r
		b.WriteRune(r)
	}
	return b.String()
}

// Fold removes differences of case and of the width of characters.
func Fold(s string) string { return cases.Fold().String(norm.NFKC.String(s)) }

func isSentenceMark(runes []rune, i int) bool {
	r := runes[i]
	if strings.ContainsRune("。、「」『』【】《》〈〉“”‘’…·—", r) {
		return true
	}
	if !strings.ContainsRune(`.,;:!?()[]{}"'`, r) {
		return false
	}
	inside := i > 0 && i+1 < len(runes) && isLatinWordRune(runes[i-1]) && isLatinWordRune(runes[i+1])
	return !inside // 12:30, 1,000, v1.2, don't
}

func isLatinWordRune(r rune) bool {
	return r < unicode.MaxLatin1 && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// NormalizeKey makes "Release_Date" and "release date" one key, as well as 发布日期 and 发布 日期.
func NormalizeKey(key string) string {
	words := strings.FieldsFunc(Fold(key), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return Normalize(strings.Join(words, " "))
}

// IsIdeograph reports whether a character's script is written without blanks.
func IsIdeograph(r rune) bool { return r >= 0x2E80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// Run is a Latin word or number with its inner marks (1.5, v2-beta, 12:30), or adjacent characters of a script without
// blanks.
type Run struct {
	Text string
	At   int // in characters
	Wide bool
}

// Runs cuts a folded text into runs.
func Runs(folded string) []Run {
	runes := []rune(folded)
	runs := make([]Run, 0, len(runes)/4+1)
	for start := 0; start < len(runes); {
		end := start + 1
		switch wide := IsIdeograph(runes[start]); {
		case wide:
			for end < len(runes) && IsIdeograph(runes[end]) {
				end++
			}
			runs = append(runs, Run{string(runes[start:end]), start, wide})
		case IsWordRune(runes[start]):
			for end < len(runes) && (IsWordRune(runes[end]) && !IsIdeograph(runes[end]) || joinsWord(runes, end)) {
				end++
			}
			runs = append(runs, Run{string(runes[start:end]), start, wide})
		}
		start = end
	}
	return runs
}

// joins are the marks that hold a name together: 10.0.3.7, prod-db-01, don't.
const joins = "'’.-_@:/"

func joinsWord(runes []rune, i int) bool {
	return strings.ContainsRune(joins, runes[i]) && i+1 < len(runes) &&
		IsWordRune(runes[i-1]) && IsWordRune(runes[i+1]) && !IsIdeograph(runes[i+1])
}

// Parts cuts a Latin run at its marks.
func Parts(run string) []string {
	return strings.FieldsFunc(run, func(r rune) bool { return strings.ContainsRune(joins, r) })
}

// Tokenize cuts a text into Latin numbers and word stems as a whole, and single Chinese characters.
func Tokenize(text string) []string {
	var out []string
	for _, run := range Runs(Fold(text)) {
		if !run.Wide {
			out = append(out, Stem(run.Text))
			continue
		}
		for _, r := range run.Text {
			out = append(out, string(r))
		}
	}
	return out
}

// IsLatin reports a letter, digit or mark of a script with blanks.
func IsLatin(r rune) bool {
	return r < 0x2E80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// IsWordRune reports a letter, digit or mark of any script.
func IsWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// ContainsWord reports whether a word stands in a text, a Latin one not inside a longer one.
func ContainsWord(text, word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	last, _ := utf8.DecodeLastRuneInString(word)
	for at := 0; word != ""; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !inOneWord(before, first) && !inOneWord(last, after) {
			return true
		}
		at = end
	}
	return false
}

func inOneWord(a, b rune) bool {
	return IsWordRune(a) && IsWordRune(b) && !IsIdeograph(a) && !IsIdeograph(b)
}

// Stem is the Snowball stemmer for English: "deploys" and "deployed" are "deploy". Other words only lose a possessive.
func Stem(word string) string {
	word = strings.TrimSuffix(word, "'s")
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// HasDigit reports whether a text has a digit.
func HasDigit(s string) bool { return strings.ContainsFunc(s, unicode.IsDigit) }

// Terms are units of comparison: Latin words and numbers, pairs of adjacent Chinese characters, and single ones
// without neighbours.
func Terms(tokens []string) map[string]bool {
	terms := map[string]bool{}
	for i, t := range tokens {
		before, after := i > 0 && IsWide(tokens[i-1]), i+1 < len(tokens) && IsWide(tokens[i+1])
		switch {
		case !IsWide(t):
			terms[t] = true
		case after:
			terms[t+tokens[i+1]] = true
		case !before:
			terms[t] = true
		}
	}
	return terms
}

// IsWide reports whether a token's script is written without blanks.
func IsWide(token string) bool {
	for _, r := range token {
		return IsIdeograph(r)
	}
	return false
}

// WordSet is the set of a text's words and their stems.
func WordSet(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
		set[Stem(w)] = true
	}
	return set
}

// HasHan reports whether a text has a Chinese character.
func HasHan(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}
