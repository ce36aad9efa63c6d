package text

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isControl reports characters that steer a terminal, hide, or turn the direction of writing, without the joiner of
// emoji parts.
func isControl(r rune) bool {
	return unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) && r != '\u200d'
}

const maxControls = 3

// HasManyControls reports more control characters than a model's slip explains.
func HasManyControls(s string) bool {
	n := 0
	for _, r := range s {
		if isControl(r) {
			n++
		}
	}
	return n > maxControls
}

// Clean drops control characters and folds white space.
func Clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, s)), " ")
}

// Split cuts a text into parts of at most limit characters, at ends of sentences if there are any. Only blanks at the
// cuts are lost.
func Split(text string, limit int) []string {
	var parts []string
	rs := []rune(text)
	for len(rs) > limit {
		cut := limit
		for i := limit; i > limit/2; i-- {
			if strings.ContainsRune("。！？；;.!?\n", rs[i-1]) {
				cut = i
				break
			}
		}
		parts = append(parts, strings.TrimSpace(string(rs[:cut])))
		rs = rs[cut:]
	}
	return append(parts, strings.TrimSpace(string(rs)))
}

// Clip returns both ends of a message: a person's remark on a pasted file stands there.
func Clip(text string) string {
	const side = 4 << 10
	if len(text) <= 2*side {
		return text
	}
	head, tail := side, len(text)-side
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + "\n" + text[tail:]
}

// Sentences yields the sentences of a text with their end marks.
func Sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for text != "" {
			n := len(text)
			if end := sentenceEndRE.FindStringIndex(text); end != nil {
				n = end[1]
			}
			if strings.TrimSpace(text[:n]) != "" && !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// Marks between letters do not count, as in a link or a version.
var sentenceEndRE = regexp.MustCompile(`[。！？；]+|\n|[.!?;]+(?:\s|$)|[?!]+\p{Han}`)
