package identify

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Folded is a text in normal form: NFKC, half-width, without invisible characters and CR. It maps offsets back to the
// original.
type Folded struct {
	Text string
	at   []int // original offset of every byte of the text, and of its end
}

// sentenceMarks would become ASCII that may continue a URL. They stay, except inside full-width identifiers.
const sentenceMarks = "，；！？（）："

// Fold returns the normal form of a text.
func Fold(s string) Folded {
	clean, from := dropInvisible(s)
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

// dropInvisible returns each byte's original offset. CR is dropped too.
func dropInvisible(s string) (clean string, from []int) {
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

func isWide(r rune) bool {
	return '０' <= r && r <= '９' || 'Ａ' <= r && r <= 'Ｚ' || 'ａ' <= r && r <= 'ｚ'
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' || '０' <= r && r <= '９' }

func isLetter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || isWide(r) && !isDigit(r)
}

func isSlash(r rune) bool { return r == '/' || r == '／' }
