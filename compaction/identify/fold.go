package identify

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folded is a text in the one spelling in which identifiers are compared: NFKC, half-width, without invisible
// characters, lines ending in \n. It knows the way back to the text that it was made from.
type Folded struct {
	Text string
	at   []int // for every byte of text, and for its end, the byte of the original that it came from
}

// sentenceMarks are full-width marks that end or part sentences. NFKC would make ASCII of them, which may be part of a
// URL: they stay, unless they stand inside an identifier that was typed in full width.
const sentenceMarks = "，；！？（）："

func Fold(s string) Folded {
	clean, from := visible(s)
	var b strings.Builder
	b.Grow(len(clean))
	at := make([]int, 0, len(clean)+1)
	write := func(p []byte, pos int) {
		b.Write(p)
		for range p {
			at = append(at, from[pos])
		}
	}
	narrow := func(begin, end int) {
		var it norm.Iter
		it.InitString(norm.NFKC, clean[begin:end])
		for !it.Done() {
			pos := it.Pos()
			write(it.Next(), begin+pos)
		}
	}
	begin := 0
	for i, r := range clean {
		if r >= utf8.RuneSelf && strings.ContainsRune(sentenceMarks, r) && !insideToken(clean, i, r) {
			narrow(begin, i)
			begin = i + utf8.RuneLen(r)
			write([]byte(clean[i:begin]), i)
		}
	}
	narrow(begin, len(clean))
	return Folded{Text: b.String(), at: append(at, len(s))}
}

// visible drops invisible characters and the \r of line ends, and says from which byte each of the rest came.
func visible(s string) (clean string, from []int) {
	var b strings.Builder
	b.Grow(len(s))
	from = make([]int, 0, len(s)+1)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != '\r' && !unicode.Is(unicode.Cf, r) {
			b.WriteString(s[i : i+size])
			for range size {
				from = append(from, i)
			}
		}
		i += size
	}
	return b.String(), append(from, len(s))
}

// insideToken reports whether a full-width mark at byte i stands inside a number, an address or a text that is
// full-width as a whole.
func insideToken(s string, i int, mark rune) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	rest := s[i+utf8.RuneLen(mark):]
	after, size := utf8.DecodeRuneInString(rest)
	if isWide(before) && isWide(after) {
		return true
	}
	switch mark {
	case '，': // 1，000
		return isDigit(before) && groupOfThree(rest)
	case '：': // 10：30, https：//, 10.0.0.5：80
		second, _ := utf8.DecodeRuneInString(rest[size:])
		return isDigit(after) && (isDigit(before) || isLetter(before)) || isSlash(after) && isSlash(second)
	}
	return false
}

func groupOfThree(s string) bool {
	n := 0
	for _, r := range s {
		if !isDigit(r) {
			break
		}
		n++
	}
	return n == 3
}

// isWide reports whether a rune is a letter or digit of ASCII in full width.
func isWide(r rune) bool {
	return '０' <= r && r <= '９' || 'Ａ' <= r && r <= 'Ｚ' || 'ａ' <= r && r <= 'ｚ'
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' || '０' <= r && r <= '９' }

func isLetter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || isWide(r) && !isDigit(r)
}

func isSlash(r rune) bool { return r == '/' || r == '／' }
