package rank

import (
	"strings"
	"unicode/utf8"

	"ebb/memory/text"
)

// A kind decides the weight, and whether the term alone makes a text a candidate.
type termKind uint8

const (
	word  termKind = iota // a Latin word's stem, a number, an identifier
	soft                  // a word of nearly every chat
	pair                  // two adjacent Chinese characters
	glyph                 // one Chinese character
	lone                  // one Chinese character between stop characters
)

type textTerm struct {
	text  string
	shown string // as in the text, but folded
	kind  termKind
	at    int // in the folded text, in characters
}

// termsOf are the terms of a text in order, with repeats: Chinese characters and pairs, except stop characters.
func termsOf(body string) []textTerm { return foldedTerms(text.Fold(body)) }

func foldedTerms(folded string) []textTerm {
	terms := make([]textTerm, 0, len(folded)/4)
	for _, run := range text.Runs(folded) {
		if run.Wide {
			terms = appendIdeographs(terms, run.Text, run.At)
		} else {
			terms = appendWords(terms, run.Text, run.At)
		}
	}
	return terms
}

// maxWord bounds a word, in bytes: a longer run is data.
const maxWord = 64

// A name with digits is also added as a whole.
func appendWords(terms []textTerm, run string, at int) []textTerm {
	parts := text.Parts(run)
	if len(parts) > 1 && len(run) <= maxWord && strings.ContainsAny(run, "0123456789_@") {
		terms = append(terms, textTerm{run, run, word, at})
	}
	apostrophe := strings.ContainsAny(run, "'’") // a run can be as long as a message
	for i, p := range parts {
		if len(p) > maxWord || stopWords[p] || i > 0 && len(p) == 1 && apostrophe {
			continue
		}
		k := word
		if softWords[p] {
			k = soft
		}
		terms = append(terms, textTerm{stemWord(p), p, k, at})
	}
	return terms
}

// appendIdeographs adds characters and pairs as parts of the text itself, without copies.
func appendIdeographs(terms []textTerm, rest string, at int) []textTerm {
	run := []rune(rest)
	for i, r := range run {
		size := utf8.RuneLen(r)
		if !stopChars[r] {
			k := glyph
			if (i == 0 || stopChars[run[i-1]]) && (i+1 == len(run) || stopChars[run[i+1]]) {
				k = lone
			}
			terms = append(terms, textTerm{rest[:size], rest[:size], k, at + i})
		}
		if i+1 < len(run) && (!stopChars[r] || !stopChars[run[i+1]]) {
			both, k := rest[:size+utf8.RuneLen(run[i+1])], pair
			if softWords[both] || stopChars[run[i]] && isSoftPair(run, i+1) || stopChars[run[i+1]] && isSoftPair(run, i-1) {
				k = soft
			}
			terms = append(terms, textTerm{both, both, k, at + i})
		}
		rest = rest[size:]
	}
	return terms
}

func isSoftPair(run []rune, i int) bool {
	return i >= 0 && i+1 < len(run) && softWords[string(run[i:i+2])]
}
