package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// EachAtom folds a text and splits it into characters of scripts without blanks, stems, and numbers without commas.
// Unlike [Runs] it parts letters from digits, and yields an empty atom where a sentence or a list divides words. The
// bytes are valid during the call only.
func EachAtom(text string, see func(atom []byte)) {
	text = Fold(text)
	var atom []byte
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		end := i + size
		switch {
		case IsIdeograph(r):
			atom = append(atom[:0], text[i:end]...)
			see(atom)
		case unicode.IsDigit(r):
			atom, end = cutNumber(text, i, atom[:0])
			see(atom)
		case unicode.IsLetter(r):
			for end < len(text) {
				next, width := utf8.DecodeRuneInString(text[end:])
				if IsIdeograph(next) || !unicode.IsLetter(next) && !unicode.IsMark(next) {
					break
				}
				end += width
			}
			atom = append(atom[:0], Stem(text[i:end])...)
			see(atom)
		case !unicode.IsSpace(r) && !strings.ContainsRune("-_./@", r):
			see(nil)
		}
		i = end
	}
}

func cutNumber(text string, i int, atom []byte) (digits []byte, end int) {
	for end = i; end < len(text); {
		r, size := utf8.DecodeRuneInString(text[end:])
		if unicode.IsDigit(r) {
			atom = append(atom, text[end:end+size]...)
		} else if next, _ := utf8.DecodeRuneInString(text[end+size:]); r != ',' || !unicode.IsDigit(next) {
			break
		}
		end += size
	}
	return atom, end
}
