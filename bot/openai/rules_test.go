package openai

import (
	"testing"

	"ebb/sessions/rules/rulestest"
)

// Each rule of rules.tsv matches its first example, and not its second.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	rulestest.Examples(t, ruleFile, nil)
}
