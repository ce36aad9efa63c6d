package tokens

import (
	"unicode"
	"unicode/utf8"
)

const (
	// maxWord bounds the bytes of a piece that the cache takes: a word, a number, a short phrase. Longer pieces do not repeat.
	maxWord = 24
	// longPiece ends a piece that no cache takes. It has several words, since each call of the library has a price.
	longPiece = 64
	// maxPiece bounds a run without a boundary, since the library's time is quadratic in it: 64 KB of one letter would
	// block a core for seconds. Such a cut may add or remove a few tokens.
	maxPiece = 128
)

type charClass uint8

const (
	sign    charClass = iota
	mark              // or an apostrophe: it may belong to the word before it
	newline           // \r \n
	blank             // other white space
	digit
	lower
	upper
	caseless
)

func classOf(r rune) charClass {
	switch {
	case r >= 0x4e00 && r <= 0x9fff: // most Chinese characters, without a search of the tables
		return caseless
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
	case r == '\'' || unicode.IsMark(r):
		return mark
	}
	return sign
}

// isBoundary reports whether each match of the library's expression ends between two characters, whatever surrounds
// them. The counts of pieces therefore add up to the count of the text.
func isBoundary(before, after charClass) bool {
	switch after {
	case sign:
		return before >= digit
	case blank:
		return before != blank && before != newline
	case newline:
		return before >= digit
	case digit: // the last blank of several stands apart before anything else
		return before != digit && before != blank
	case upper:
		return before == lower || before == digit || before == newline
	case lower, caseless:
		return before == digit || before == newline
	}
	return before == digit // a mark
}

// pieceLength is the length of the first piece of a text that is not empty.
func pieceLength(text string) int {
	before, digits := sign, 0
	for i, r := range text {
		k := classOf(r)
		if i > 0 && (i+utf8.RuneLen(r) > maxPiece || digits == 3 || (i <= maxWord || i >= longPiece) && isBoundary(before, k)) {
			return i
		}
		if k == digit {
			digits++
		}
		before = k
	}
	return len(text)
}
