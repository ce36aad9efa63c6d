// Package compaction decides when a conversation leaves the model's window and plans which part. All of it is pure.
// [Window] holds the budgets; every difference between policies is a field of [Policy].
//
// The log never changes: a compaction moves a cursor and adds a summary, so a failed one changes nothing. A plan is
// made on a snapshot and committed by compare-and-swap; messages that arrive meanwhile stay raw.
package compaction
