package compaction

import (
	"strings"
	"testing"
)

// The parameters of a policy are the rules that it has, and a key without effect names what it needs.
func TestParametersOfPolicies(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"token_budget":   "tail_share=0.6 tail_turns=1",
		"sliding_window": "context_size=75 cooldown=15m0s hard_limit=30 tail_messages=40 window_messages=12",
		"turns":          "cached_context_turns=3 full_context_turns=4 roll_up_segments=8 roll_up_tokens=1200",
		"offload":        "offload_at=0.7 offload_enough=15000 offload_over=2000 summary_tokens=8000 tail_messages=5",
	} {
		if got := strings.Join(Policies[name].Parameters(), " "); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	for name, p := range Policies {
		for _, parameter := range p.Parameters() {
			key, _, _ := strings.Cut(parameter, "=")
			if what, has := Needs(key); has != nil && !has(p) {
				t.Errorf("%s has %s, which is said to need %s", name, key, what)
			}
		}
	}
	if what, has := Needs("full_context_turns"); what != `policy "turns"` || has(Policies["token_budget"]) || !has(Policies["turns"]) {
		t.Errorf("full_context_turns needs %s", what)
	}
	if _, has := Needs("tail_messages"); has != nil {
		t.Error("tail_messages has an effect on every policy")
	}
}
