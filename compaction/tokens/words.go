package tokens

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord bounds the bytes of a word, since the merges of one take quadratic time. Runs without a boundary are cut there, which may
// add or remove a few tokens.
const maxWord = 128

type charClass uint8

const (
	sign charClass = iota
	mark
	newline // \r \n
	blank   // other white space
	digit
	lower
	upper
	caseless
)

// asciiClasses spares most characters the search of Unicode's tables.
var asciiClasses = func() (all [utf8.RuneSelf]charClass) {
	for r := range all {
		all[r] = searchClass(rune(r))
	}
	return all
}()

func classOf(r rune) charClass {
	switch {
	case r < utf8.RuneSelf:
		return asciiClasses[r]
	case r >= 0x4e00 && r <= 0x9fff: // most Chinese characters
		return caseless
	}
	return searchClass(r)
}

func searchClass(r rune) charClass {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLower(r):
		return lower
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r):
		return caseless
	case unicode.IsSpace(r):
		return blank
	case unicode.IsNumber(r):
		return digit
	case unicode.IsMark(r):
		return mark
	}
	return sign
}

// wordLength is the length of the first match of the expression of o200k_base in a valid text that is not empty. The alternatives are
// tried in the expression's order:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func wordLength(text string) int {
	if len(text) > maxWord {
		end := maxWord
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	r, size := utf8.DecodeRuneInString(text)
	first := classOf(r)
	if first < digit && first != newline { // a sign, a mark or a blank before a word
		if end := letters(text, size); end > 0 {
			return end
		}
	}
	switch first {
	case lower, upper, caseless, mark:
		return letters(text, 0)
	case digit:
		return digits(text)
	case sign:
		return signs(text, 0)
	}
	if r == ' ' {
		if end := signs(text, 1); end > 1 {
			return end
		}
	}
	return blanks(text)
}

// letters returns the end of capitals and small letters from a place on, with an English ending, and 0 without letters. Letters
// without case, and marks, are both.
func letters(text string, from int) int {
	end, both := from, 0 // after the capitals, and after the last of them that may be small
	small := false
	for at, r := range text[from:] {
		class := classOf(r)
		if class == lower {
			small = true
			break
		}
		if class != upper && class != caseless && class != mark {
			break
		}
		end = from + at + utf8.RuneLen(r)
		if class != upper {
			both = end
		}
	}
	switch {
	case small:
		end = smallLetters(text, end)
	case both > 0: // the last one of both is the small letter, and the capitals behind it are the next word
		end = both
	case end == from:
		return 0
	}
	return end + ending(text[end:])
}

func smallLetters(text string, from int) int {
	for at, r := range text[from:] {
		if class := classOf(r); class != lower && class != caseless && class != mark {
			return from + at
		}
	}
	return len(text)
}

// ending is the length of an English ending, as of "it's".
func ending(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | ' ' {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) > 2 {
		switch strings.ToLower(text[1:3]) {
		case "re", "ve", "ll":
			return 3
		}
	}
	return 0
}

func digits(text string) int {
	n := 0
	for at, r := range text {
		if n == 3 || classOf(r) != digit {
			return at
		}
		n++
	}
	return len(text)
}

// signs returns the end of signs and marks from a place on, with newlines and slashes behind them.
func signs(text string, from int) int {
	end := len(text)
	for at, r := range text[from:] {
		if class := classOf(r); class != sign && class != mark {
			end = from + at
			break
		}
	}
	if end == from {
		return from
	}
	for end < len(text) && (text[end] == '\r' || text[end] == '\n' || text[end] == '/') {
		end++
	}
	return end
}

// blanks is the length of white space up to its last newline, or else up to the blank before the next word.
func blanks(text string) int {
	last, lines := 0, 0
	for at, r := range text {
		switch classOf(r) {
		case newline:
			lines = at + 1
		case blank:
		default:
			if lines > 0 {
				return lines
			}
			if last > 0 {
				return last
			}
			return at
		}
		last = at
	}
	if lines > 0 {
		return lines
	}
	return len(text)
}
