package compaction

import (
	"fmt"
	"slices"
)

type (
	countRule struct {
		key string
		n   int
	}
	shareRule struct {
		key string
		x   float64
	}
)

func (p Policy) countRules() []countRule {
	return []countRule{
		{"context_size", p.ContextSize},
		{"window_messages", p.Window},
		{"hard_limit", p.HardLimit},
		{"tail_messages", p.TailMessages},
		{p.turnsKey(), p.TailTurns},
		{"max_messages", p.MaxMessages},
		{segmentKey, p.Segment},
		{"offload_over", p.OffloadOver},
		{"offload_enough", p.OffloadEnough},
		{"roll_up_tokens", p.RollUpTokens},
		{"roll_up_segments", p.RollUpSegments},
		{"summary_tokens", p.SummaryTokens},
	}
}

func (p Policy) shareRules() []shareRule {
	return []shareRule{{"tail_share", p.TailShare}, {"offload_at", p.OffloadAt}, {"cache_price", p.CachePrice}}
}

// Parameters lists the rules in force as key=value, sorted.
func (p Policy) Parameters() []string {
	var out []string
	for _, rule := range p.countRules() {
		if rule.n != 0 {
			out = append(out, fmt.Sprintf("%s=%d", rule.key, rule.n))
		}
	}
	for _, rule := range p.shareRules() {
		if rule.x != 0 {
			out = append(out, fmt.Sprintf("%s=%g", rule.key, rule.x))
		}
	}
	if p.Cooldown != 0 {
		out = append(out, fmt.Sprintf("cooldown=%s", p.Cooldown))
	}
	slices.Sort(out)
	return out
}

// needs are keys without effect on a policy that lacks something.
var needs = []struct {
	keys []string
	what string
	has  func(Policy) bool
}{
	{[]string{"full_context_turns", segmentKey}, `policy "turns"`, func(p Policy) bool { return p.Segment > 0 }},
	{[]string{"offload_over", "offload_at", "offload_enough"}, `mode "offload_then_compact"`, func(p Policy) bool { return p.OffloadOver > 0 }},
	{[]string{"cache_price"}, `policy "balanced"`, func(p Policy) bool { return p.Batch }},
}

// Needs returns the requirement of a configuration key, such as `policy "turns"`, and a test for it; nil for a key of
// every policy.
func Needs(key string) (what string, has func(Policy) bool) {
	for _, n := range needs {
		if slices.Contains(n.keys, key) {
			return n.what, n.has
		}
	}
	return "", nil
}
