// Package summarize turns a range of events into summaries that are ready to commit, chunk by chunk: transcript,
// model, gate, audit.
//
// A model that finds a request too long gets a smaller one, never the same again. After failed retries the chat's
// model is asked; then an error changes nothing. The audit repairs and never blocks: any summary is better than none.
// A failed roll-up does not fail the compaction; the next one tries again.
package summarize
