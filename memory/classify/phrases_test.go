package classify

import (
	"regexp/syntax"
	"testing"

	"pgregory.net/rapid"

	"ebb/memory/text/texttest"
)

// lists are the phrase lists that every message is held against.
var lists = map[string]phraseList{
	"open": openRE, "wonder": wonderRE, "asked": askedRE, "polite": politeRE, "property": propertyRE, "weight": weightRE,
	"identifier": identifierRE, "remember": rememberRE, "recall": recallRE, "past": pastRE, "sensitive": sensitiveRE,
	"order": orderRE, "conceal": concealRE, "widen": widenRE, "harmless": harmlessRE, "request": requestRE, "report": reportRE,
	"scaffold": scaffoldRE, "style": styleRE, "self": selfRE, "product": productRE,
	"toolTalk": toolTalkRE, "question": questionRE, "heading": headingRE, "ordinal": ordinalRE, "identityCard": identityCardRE,
}

// Law: to look for the words that a match must contain never hides a match. Whole matches are drawn from the expressions
// themselves.
func TestPhrasesFindWhatTheirExpressionFinds(t *testing.T) {
	t.Parallel()
	for name, l := range lists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := syntax.Parse(l.union().String(), syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			matched := false
			rapid.Check(t, func(t *rapid.T) {
				text := rapid.SampledFrom([]string{"", "我", "请 ", "x"}).Draw(t, "before") + texttest.Matching(t, tree) +
					rapid.SampledFrom([]string{"", "?", "的 吗", " y"}).Draw(t, "after")
				want := l.union().MatchString(text)
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

func TestMostPhrasesAreKnownByWords(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"asked", "remember", "recall", "past", "weight"} {
		for _, p := range lists[name].patterns() {
			if len(p.needed) == 0 {
				t.Errorf("%s: every text is searched for %s", name, p.re())
			}
		}
	}
}
