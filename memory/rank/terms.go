package rank

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// kind is the kind of a term; it decides the term's weight, and whether the term alone makes a text a candidate.
type kind uint8

const (
	word  kind = iota // a Latin word's stem, a number, an identifier
	soft              // a word that nearly every chat is full of
	pair              // two Chinese characters that stand side by side
	glyph             // one Chinese character
	lone              // one Chinese character of which a query says nothing more
)

type term struct {
	text  string
	shown string // as the text has it, but for its case
	kind  kind
	at    int // place in the folded text, in characters
}

// fold makes texts comparable that differ in case or in the width of their characters only.
func fold(s string) string { return cases.Fold().String(norm.NFKC.String(s)) }

// termsOf are the terms of a text, each as often as it occurs, in its order.
//
// Chinese has no blanks: each character is a term and so is each pair, those left out that say nothing. On every Chinese
// set that this was measured with it found more than a dictionary's words.
func termsOf(text string) []term { return foldedTerms(fold(text)) }

func foldedTerms(text string) []term {
	runes := []rune(text)
	terms := make([]term, 0, len(runes)/2)
	for start := 0; start < len(runes); {
		end := start + 1
		switch {
		case isIdeograph(runes[start]):
			for end < len(runes) && isIdeograph(runes[end]) {
				end++
			}
			terms = appendIdeographs(terms, runes[start:end], start)
		case isWordRune(runes[start]):
			for end < len(runes) && (isWordRune(runes[end]) && !isIdeograph(runes[end]) || joinsWord(runes, end)) {
				end++
			}
			terms = appendWords(terms, string(runes[start:end]), start)
		}
		start = end
	}
	return terms
}

// isIdeograph reports whether a character is of a script that is written without blanks.
func isIdeograph(r rune) bool { return r >= 0x2E80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// joinsWord reports whether the mark at i stands inside one name: 10.0.3.7, prod-db-01, don't.
func joinsWord(runes []rune, i int) bool {
	if !strings.ContainsRune("'’.-_@:/", runes[i]) || i+1 >= len(runes) {
		return false
	}
	return isWordRune(runes[i-1]) && isWordRune(runes[i+1]) && !isIdeograph(runes[i+1])
}

// maxWord bounds a word, in bytes: a longer run is data.
const maxWord = 64

// appendWords adds the text between two blanks: its words, and the whole if it is a name with digits.
func appendWords(terms []term, text string, at int) []term {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("'’.-_@:/", r) })
	if len(parts) > 1 && len(text) <= maxWord && strings.ContainsAny(text, "0123456789_@") {
		terms = append(terms, term{text, text, word, at})
	}
	apostrophe := strings.ContainsAny(text, "'’") // looked for once: a run of marks and letters can be as long as a message
	for i, p := range parts {
		if len(p) > maxWord || stopWords[p] || i > 0 && len(p) == 1 && apostrophe {
			continue
		}
		k := word
		if softWords[p] {
			k = soft
		}
		terms = append(terms, term{stem(p), p, k, at})
	}
	return terms
}

func appendIdeographs(terms []term, run []rune, at int) []term {
	for i, r := range run {
		if !stopChars[r] {
			k := glyph
			if (i == 0 || stopChars[run[i-1]]) && (i+1 == len(run) || stopChars[run[i+1]]) {
				k = lone
			}
			terms = append(terms, term{string(r), string(r), k, at + i})
		}
		if i+1 < len(run) && (!stopChars[r] || !stopChars[run[i+1]]) {
			text, k := string(run[i:i+2]), pair
			if softWords[text] || stopChars[run[i]] && isSoftPair(run, i+1) || stopChars[run[i+1]] && isSoftPair(run, i-1) {
				k = soft
			}
			terms = append(terms, term{text, text, k, at + i})
		}
	}
	return terms
}

// isSoftPair reports whether two characters of a run are a word that occurs in nearly every chat.
func isSoftPair(run []rune, i int) bool {
	return i >= 0 && i+1 < len(run) && softWords[string(run[i:i+2])]
}
