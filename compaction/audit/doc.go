// Package audit checks a summary against its source. [CheckReply] rejects replies that are no summaries,
// [Reference.Compare] finds missing and invented identifiers, and [Heal] repairs both without a model; [RepairPrompt]
// asks a model first.
package audit
