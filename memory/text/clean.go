package text

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// control reports characters that nobody reads: those that steer a terminal, hide, or turn the direction of writing.
// White space is none, nor what joins the parts of an emoji.
func control(r rune) bool {
	return unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) && r != '\u200d'
}

// maxControls is the number of control characters that a slip of a model may leave in a text.
const maxControls = 3

func HasManyControls(s string) bool {
	n := 0
	for _, r := range s {
		if control(r) {
			n++
		}
	}
	return n > maxControls
}

// clean drops control characters and folds white space.
func Clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, s)), " ")
}

// Split cuts a text into parts of at most limit characters, at the ends of sentences where there are any. The parts
// joined are the text, blanks at the cuts aside.
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

// clipped bounds what the marks of a message are looked for in: its beginning and its end. What somebody says of a file
// that they paste stands there.
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

// sentences yields the sentences of a text with the marks that end them.
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

// A mark between letters, as in a link or a version, ends nothing.
var sentenceEndRE = regexp.MustCompile(`[。！？；]+|\n|[.!?;]+(?:\s|$)|[?!]+\p{Han}`)
