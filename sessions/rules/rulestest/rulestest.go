// Package rulestest checks the examples of rules.
package rulestest

import (
	"regexp"
	"testing"

	"ebb/sessions/rules"
)

var unknownPart = regexp.MustCompile(`(?:^|[^pP])\{[A-Za-z]+\}`)

// Examples checks each rule's examples. matches applies a rule as its package does; nil searches the text for the
// expression.
func Examples(t *testing.T, f rules.File, matches func(r rules.Rule, text string) bool) {
	t.Helper()
	if matches == nil {
		matches = func(r rules.Rule, text string) bool { return regexp.MustCompile(r.Expr).MatchString(text) }
	}
	for _, r := range f.All() {
		if unknownPart.MatchString(r.Expr) {
			t.Errorf("%s: an unknown part in %s", r.List, r.Expr)
		}
		if !matches(r, r.Match) {
			t.Errorf("%s: %q does not match %s", r.List, r.Match, r.Expr)
		}
		if matches(r, r.Miss) {
			t.Errorf("%s: %q matches %s", r.List, r.Miss, r.Expr)
		}
	}
	if len(f.All()) == 0 {
		t.Error("no rules")
	}
}
