package classify

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"ebb/memory/text"
)

// Most messages match none, so only patterns with a required word in the text are compiled and tried.
type phraseList struct {
	union    func() *regexp.Regexp
	patterns func() []phrasePattern
}

type phrasePattern struct {
	re     func() *regexp.Regexp
	needed []string // every match contains one of these; empty: unknown
}

// The texts are folded, and the patterns are read at the first use.
func newPhraseList(patterns func() []string) phraseList {
	return phraseList{
		union: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(strings.Join(patterns(), "|")) }),
		patterns: sync.OnceValue(func() []phrasePattern {
			var all []phrasePattern
			for _, expr := range patterns() {
				p := phrasePattern{re: text.LazyRegexp(expr)}
				if tree, err := syntax.Parse(expr, syntax.Perl); err == nil { // a mistake panics in re
					p.needed = keepShortest(requiredWords(tree))
				}
				all = append(all, p)
			}
			return all
		}),
	}
}

// MatchString reports whether a folded text contains a match.
func (l phraseList) MatchString(folded string) bool {
	has := func(w string) bool { return strings.Contains(folded, w) }
	for _, p := range l.patterns() {
		if (len(p.needed) == 0 || slices.ContainsFunc(p.needed, has)) && p.re().MatchString(folded) {
			return true
		}
	}
	return false
}

const maxNeeds = 64

// Every match contains one of the words; empty if no such list exists.
func requiredWords(e *syntax.Regexp) []string {
	switch e.Op {
	case syntax.OpLiteral:
		if e.Flags&syntax.FoldCase == 0 {
			return []string{string(e.Rune)}
		}
	case syntax.OpCharClass:
		return charsOf(e.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return requiredWords(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return requiredWords(e.Sub[0])
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range e.Sub {
			words := requiredWords(sub)
			if len(words) == 0 {
				return nil
			}
			all = append(all, words...)
		}
		return all
	case syntax.OpConcat:
		var best []string
		for _, sub := range e.Sub {
			if words := requiredWords(sub); isRarer(words, best) {
				best = words
			}
		}
		return best
	}
	return nil
}

func charsOf(ranges []rune) []string {
	var all []string
	for i := 0; i+1 < len(ranges); i += 2 {
		if int(ranges[i+1]-ranges[i]) > maxNeeds-len(all) {
			return nil
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			all = append(all, string(r))
		}
	}
	return all
}

// One Chinese character and two Latin letters are about equally common.
func isRarer(a, b []string) bool {
	if len(a) == 0 || len(a) > maxNeeds || len(b) == 0 {
		return len(a) > 0 && len(a) <= maxNeeds && len(b) == 0
	}
	least := func(words []string) int {
		n := math.MaxInt
		for _, w := range words {
			n = min(n, len(w)+utf8.RuneCountInString(w))
		}
		return n
	}
	if x, y := least(a), least(b); x != y {
		return x > y
	}
	return len(a) < len(b)
}

func keepShortest(words []string) []string {
	slices.SortFunc(words, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	var kept []string
	for _, w := range words {
		if !slices.ContainsFunc(kept, func(k string) bool { return strings.Contains(w, k) }) {
			kept = append(kept, w)
		}
	}
	return kept
}
