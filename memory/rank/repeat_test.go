package rank

import (
	"testing"

	"pgregory.net/rapid"
)

// An event that says little more than a memory drawn from it is one find with it; one that says something else, or much more, is not.
func TestRepeats(t *testing.T) {
	t.Parallel()
	doc := func(text string) Doc { return Doc{Keys: Keys(7, text)} }
	memory := doc("Zhang owns the billing service since March")
	const much = " besides the printer on the third floor needs toner, lunch comes from the noodle shop, and the parking permits for visitors expire at the end of this month, " +
		"while the coffee machine, two broken chairs and a projector wait in the hall for a driver with a van, a permit and some patience"
	for event, want := range map[string]bool{
		"Zhang owns the billing service since March":                     true,
		"as of March the billing service is owned by Zhang, please note": true,
		"billing":                 false,
		"the printer needs toner": false,
		"Zhang owns the billing service since March," + much: false,
		"": false,
	} {
		if got := Repeats(doc(event), memory); got != want {
			t.Errorf("%q repeats the memory: %v", event, got)
		}
	}
	if Repeats(doc("anything"), Doc{}) {
		t.Error("a memory without terms is repeated")
	}
}

// Law: each text repeats itself, if it has a word to search for.
func TestTextsRepeatThemselves(t *testing.T) {
	t.Parallel()
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"billing", "zhang", "redis", "账单", "发布", "4711", "printer"}), 1, 9)
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, w := range words.Draw(t, "words") {
			text += " " + w
		}
		if d := (Doc{Keys: Keys(7, text)}); !Repeats(d, d) {
			t.Fatalf("%q does not repeat itself", text)
		}
	})
}

// Law: synonyms hold both ways.
func TestSynonymsHoldBothWays(t *testing.T) {
	t.Parallel()
	for word, others := range synonyms {
		for _, other := range others {
			back := false
			for _, w := range synonyms[other] {
				back = back || w == word
			}
			if !back {
				t.Errorf("%q is a synonym of %q, and not the reverse", other, word)
			}
		}
	}
}
