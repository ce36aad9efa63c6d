// Package texttest makes texts that match expressions.
package texttest

import (
	"regexp/syntax"
	"strings"

	"pgregory.net/rapid"
)

// Matching draws a text that an expression matches, or nearly: anchors are left to chance.
func Matching(t *rapid.T, e *syntax.Regexp) string {
	var b strings.Builder
	several := func(least, most int) {
		for range rapid.IntRange(least, most).Draw(t, "times") {
			b.WriteString(Matching(t, e.Sub[0]))
		}
	}
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		i := 2 * rapid.IntRange(0, len(e.Rune)/2-1).Draw(t, "range")
		return string(rapid.Int32Range(e.Rune[i], e.Rune[i+1]).Draw(t, "rune"))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpCapture:
		return Matching(t, e.Sub[0])
	case syntax.OpStar:
		several(0, 2)
	case syntax.OpPlus:
		several(1, 2)
	case syntax.OpQuest:
		several(0, 1)
	case syntax.OpRepeat:
		several(e.Min, max(e.Min, min(e.Max, e.Min+2)))
	case syntax.OpAlternate:
		return Matching(t, rapid.SampledFrom(e.Sub).Draw(t, "way"))
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			b.WriteString(Matching(t, sub))
		}
	}
	return b.String()
}
