// Package extract reads a range of the log with a model and saves the facts in it: a flush.
//
//	flush.go       [Flusher], its request and its outcome
//	reading.go     one flush: a queue of events, and the cursor behind it
//	parts.go       the longest beginning of the queue that a request has room for
//	request.go     the call, its second attempt, and long texts in pieces
//	unreadable.go  events that the model refuses
//	flush.md       the prompt
//
// Each part commits on its own, so that a failed flush keeps the parts before the failure.
package extract
