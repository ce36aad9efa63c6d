package memory

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lists are the phrase lists that every message is held against.
var lists = map[string]phraseList{
	"open": openRE, "wonder": wonderRE, "asked": askedRE, "polite": politeRE, "property": propertyRE, "weight": weightRE,
	"identifier": identifierRE, "remember": rememberRE, "recall": recallRE, "past": pastRE, "sensitive": sensitiveRE,
	"order": orderRE, "conceal": concealRE, "widen": widenRE, "harmless": harmlessRE, "request": requestRE, "report": reportRE,
	"scaffold": scaffoldRE, "style": styleRE, "self": selfRE, "product": productRE,
}

// example draws a text that an expression matches, or nearly: anchors are left to chance.
func example(t *rapid.T, e *syntax.Regexp) string {
	var b strings.Builder
	several := func(least, most int) {
		for range rapid.IntRange(least, most).Draw(t, "times") {
			b.WriteString(example(t, e.Sub[0]))
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
		return example(t, e.Sub[0])
	case syntax.OpStar:
		several(0, 2)
	case syntax.OpPlus:
		several(1, 2)
	case syntax.OpQuest:
		several(0, 1)
	case syntax.OpRepeat:
		several(e.Min, max(e.Min, min(e.Max, e.Min+2)))
	case syntax.OpAlternate:
		return example(t, rapid.SampledFrom(e.Sub).Draw(t, "way"))
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			b.WriteString(example(t, sub))
		}
	}
	return b.String()
}

// Law: to look for the words that a match must contain never hides a match. Whole matches are drawn from the expressions
// themselves.
func TestPhrasesFindWhatTheirExpressionFinds(t *testing.T) {
	t.Parallel()
	for name, l := range lists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := syntax.Parse(l.String(), syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			matched := false
			rapid.Check(t, func(t *rapid.T) {
				text := rapid.SampledFrom([]string{"", "我", "请 ", "x"}).Draw(t, "before") + example(t, tree) +
					rapid.SampledFrom([]string{"", "?", "的 吗", " y"}).Draw(t, "after")
				want := l.Regexp.MatchString(text)
				matched = matched || want
				if got := l.MatchString(text); got != want {
					t.Fatalf("%q: %v, the expression alone says %v", text, got, want)
				}
			})
			if !matched {
				t.Error("no text was a match")
			}
		})
	}
}

// Law: no date is in a text that is not worth a look.
func TestDatesAreWhereALookIsWorthIt(t *testing.T) {
	t.Parallel()
	for _, r := range allDates.rules {
		tree, err := syntax.Parse("(?i)"+r.pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.SampledFrom([]string{"x ", "今天", "in 3 weeks "}).Draw(t, "before") + example(t, tree) + " y"
			want := allDates.re.FindAllStringIndex(text, -1)
			if len(want) > 0 && !mayDate(text) {
				t.Fatalf("%q has a date", text)
			}
			if got := allDates.places(text); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%q: dates at %v, want %v", text, got, want)
			}
		})
	}
}

func TestMostPhrasesAreKnownByWords(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"asked", "remember", "recall", "past", "weight"} {
		for _, p := range lists[name].patterns {
			if len(p.needed) == 0 {
				t.Errorf("%s: every text is searched for %s", name, p)
			}
		}
	}
}
