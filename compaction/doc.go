// Package compaction decides when a conversation leaves the model's window and plans which part. All of it is pure.
//
// [Window] holds the token budgets. [Policy] is data: every difference between policies is a field. [Policy.Decide] names the
// work that is due, [Policy.Plan] the events that leave, [Policy.Prune] and [Policy.Offload] the tool results that get shorter,
// and [Policy.Progress] is the gate of the commit.
//
// The sub-packages do the work: tokens counts, identify finds identifiers, transcript writes history as data, summarize asks a
// model, audit checks its answer, erase removes erased content from summaries.
//
// # Decisions
//
// The log never changes: a compaction moves a cursor and adds a summary, so a failed one changes nothing.
// A plan is made on a snapshot and committed by compare-and-swap; messages that arrive meanwhile stay raw.
// A summary shorter than 1.5 % of its source is suspicious, but above 50 tokens any length passes: a large source of small talk
// holds little.
package compaction
