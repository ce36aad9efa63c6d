package tokens

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The tokenizer cuts a text into pieces before it merges bytes within each, by this expression:
//
//	 1  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 2  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 3  \p{N}{1,3}
//	 4   ?[^\s\p{L}\p{N}]+[\r\n/]*
//	 5  \s*[\r\n]+
//	 6  \s+(?!\S)
//	 7  \s+
//
// A general engine for expressions takes most of the time of counting, and backtracks over long runs. This code does
// the same by hand, in one pass.

type charClass uint8

const (
	upper   charClass = 1 << iota // Lu, Lt: before the last small letter
	lower                         // Ll: from there on
	mark                          // M: in both places, like Lm and Lo, which are upper|lower
	digit                         // N
	blank                         // \s
	newline                       // \r \n, which are blank too

	letter = upper | lower
)

// classes holds the class of each character of the first plane: 64 KB, filled when first needed.
var classes = sync.OnceValue(func() *[1 << 16]charClass {
	var t [1 << 16]charClass
	for r := range t {
		t[r] = classIn(rune(r))
	}
	return &t
})

func classIn(r rune) charClass {
	switch {
	case r == '\r' || r == '\n':
		return blank | newline
	case unicode.IsSpace(r):
		return blank
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.Is(unicode.Lu, r), unicode.Is(unicode.Lt, r):
		return upper
	case unicode.IsLetter(r):
		return letter
	case unicode.Is(unicode.M, r):
		return letter | mark
	case unicode.Is(unicode.N, r):
		return digit
	}
	return 0
}

type textSplitter struct {
	table *[1 << 16]charClass
	text  string
}

// classAt is the class and length of the character at byte i; 0 at the end.
func (c *textSplitter) classAt(i int) (charClass, int) {
	if i >= len(c.text) {
		return 0, 0
	}
	if b := c.text[i]; b < utf8.RuneSelf {
		return c.table[b], 1
	}
	r, n := utf8.DecodeRuneInString(c.text[i:])
	if r < 1<<16 {
		return c.table[r], n
	}
	return classIn(r), n
}

func (c *textSplitter) pieceEnd(i int) int {
	k, n := c.classAt(i)
	next, _ := c.classAt(i + n)
	switch {
	// A character that is neither letter, digit nor line end may precede a word. A mark may precede or begin it, with
	// the same result.
	case k&(newline|digit|letter) == 0 && next&letter != 0:
		return c.wordEnd(i + n)
	case k&letter != 0:
		return c.wordEnd(i)
	case k&digit != 0:
		return c.numberEnd(i)
	case k&blank == 0:
		return c.signsEnd(i)
	case c.text[i] == ' ' && i+n < len(c.text) && next&(blank|letter|digit) == 0:
		return c.signsEnd(i + n)
	}
	return c.spaceEnd(i)
}

// wordEnd is alternative 1, or 2 without a small letter at the end. i is behind the optional first character.
func (c *textSplitter) wordEnd(i int) int {
	head, last := i, -1 // last: end of the last character that may begin the small letters
	for k, n := c.classAt(head); k&upper != 0; k, n = c.classAt(head) {
		head += n
		if k&lower != 0 {
			last = head
		}
	}
	end := head
	for k, n := c.classAt(end); k&lower != 0; k, n = c.classAt(end) {
		end += n
	}
	if end == head && last >= 0 {
		end = last
	}
	return end + contractionLength(c.text[end:])
}

// contractionLength is the length of an English contraction at the start.
func contractionLength(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) > 2 {
		switch strings.ToLower(s[1:3]) {
		case "re", "ve", "ll":
			return 3
		}
	}
	return 0
}

// numberEnd is alternative 3.
func (c *textSplitter) numberEnd(i int) int {
	for range 3 {
		k, n := c.classAt(i)
		if k&digit == 0 {
			break
		}
		i += n
	}
	return i
}

// signsEnd is alternative 4. i is behind the optional blank.
func (c *textSplitter) signsEnd(i int) int {
	for i < len(c.text) {
		k, n := c.classAt(i)
		if k&(blank|digit) != 0 || k&letter != 0 && k&mark == 0 {
			break
		}
		i += n
	}
	for i < len(c.text) && strings.IndexByte("\r\n/", c.text[i]) >= 0 {
		i++
	}
	return i
}

// spaceEnd is alternative 5, 6 or 7: up to the last line end, else up to the blank before the next word, else one
// blank.
func (c *textSplitter) spaceEnd(i int) int {
	end, previous, lines := i, i, -1
	for {
		k, n := c.classAt(end)
		if k&blank == 0 {
			break
		}
		previous, end = end, end+n
		if k&newline != 0 {
			lines = end
		}
	}
	switch {
	case lines >= 0:
		return lines
	case end < len(c.text) && previous > i:
		return previous
	}
	return end
}
