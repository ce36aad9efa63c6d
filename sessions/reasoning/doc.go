// Package reasoning separates the reasoning of a model from its answer. Reasoning is never stored, summarized or sent: it
// quotes prompts, and a stored thought would count as a statement.
package reasoning
