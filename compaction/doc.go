// Package compaction decides when a conversation leaves the model's window and plans which part. All of it is pure.
// [Window] holds the token budgets, and [Policy] is data: every difference between policies is a field.
// [Policy.Decide] names the work that is due, [Policy.Plan] the leaving events, [Policy.Prune] and [Policy.Offload]
// the results that get shorter. [Policy.Progress] is the gate of the commit.
//
// The log never changes: a compaction moves a cursor and adds a summary, so a failed one changes nothing. A plan is
// made on a snapshot and committed by compare-and-swap; messages that arrive meanwhile stay raw.
package compaction
