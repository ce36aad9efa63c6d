// Package audit checks a summary against its source: [CheckReply] is the gate, [Reference.Compare] the comparison,
// [Heal] a repair without a model.
package audit
