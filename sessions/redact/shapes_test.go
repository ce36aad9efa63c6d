package redact

import (
	"regexp"
	"testing"

	"ebb/sessions/rules"
	"ebb/sessions/rules/rulestest"
)

// Each rule of rules.tsv finds its first example, and not its second. For shapes and frames the whole search agrees.
func TestShapeExamples(t *testing.T) {
	t.Parallel()
	if len(shapes) == 0 {
		t.Fatal("no shapes")
	}
	rulestest.Examples(t, ruleFile, func(r rules.Rule, example string) bool {
		found := regexp.MustCompile(r.Expr).MatchString(example)
		if s := newShapes([]rules.Rule{r}); len(s) == 1 {
			if HasSecret(example) != found || found && !s[0].framed && !s[0].mayMatch(example) {
				t.Errorf("%q: the search for %s and the whole search differ", example, r.Expr)
			}
		}
		return found
	})
}
