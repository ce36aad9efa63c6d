package dates

import (
	"regexp"
	"testing"

	"ebb/sessions/rules"
	"ebb/sessions/rules/rulestest"
)

// Each rule of rules.tsv matches its first example, and not its second.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	rulestest.Examples(t, ruleFile, func(r rules.Rule, example string) bool {
		return regexp.MustCompile("(?i)" + r.Expr).MatchString(example)
	})
}
