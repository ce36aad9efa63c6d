// Package audit checks a summary against its source.
//
// [CheckReply] is the gate: it rejects replies that are no summaries. [Compare] finds missing and invented identifiers. [Heal]
// repairs both without a model; [RepairPrompt] asks a model first.
package audit
