// Package erase removes from summaries what erased events said.
//
// A summary could be emptied and written again from the log instead: nothing would leak, and this package would be gone. Its price is
// why it stays. Until a model has written, the conversation has nothing of what was compacted, for all its members. That lasts as long as
// the model is down or the daily budget is used up. And each erasure costs the tokens of the whole range. So a summary is emptied
// only if more than half of it goes, or if its words can't be compared.
package erase
