package redact

import "testing"

// Each rule of shapes.tsv finds its first example, and not its second. The whole search agrees.
func TestShapeExamples(t *testing.T) {
	t.Parallel()
	if len(shapes) == 0 {
		t.Fatal("no rules")
	}
	for _, r := range shapes {
		if !r.re.MatchString(r.match) || !HasSecret(r.match) || !r.framed && !r.mayMatch(r.match) {
			t.Errorf("%s: not in %q", r.re, r.match)
		}
		if r.re.MatchString(r.miss) || HasSecret(r.miss) {
			t.Errorf("%s: in %q", r.re, r.miss)
		}
	}
}
