package compaction

import "fmt"

// Policy says when a conversation is compacted and what stays. A zero field means that the rule is not in force.
type Policy struct {
	Name string
	// Trigger.
	Tokens bool // at Window.Trigger
	// Tail: what stays raw, at least the newest turn.
	TailShare float64 // of Window.Available
	TailTurns int     // at least so many turns
	// Flush memory at Window.FlushAt.
	Flush bool
	// Rolling: the new summary replaces the old ones and tells their ranges too.
	Rolling bool
}

// Policies are the policies that a configuration may name.
var Policies = map[string]Policy{
	"token_budget": {Name: "token_budget", Tokens: true, TailShare: 0.6, TailTurns: 1, Flush: true, Rolling: true},
}

// minFreed is the least that a compaction must free, in tokens, to count as progress.
const minFreed = 512

// Progress is the commit gate: it says why a compaction that was computed must not be committed, or nil. Success means
// that the context became smaller, not that a model answered.
func (p Policy) Progress(before, after, source, summary int) error {
	if freed := before - after; freed < max(minFreed, before/10) {
		return fmt.Errorf("frees %d of %d tokens, want at least %d", freed, before, max(minFreed, before/10))
	}
	if float64(summary) >= 0.8*float64(source) {
		return fmt.Errorf("summary of %d tokens for a source of %d", summary, source)
	}
	return nil
}
