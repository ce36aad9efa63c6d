// Package summarize turns a range of events into summaries that are ready to commit, chunk by chunk: transcript,
// model, gate, audit. The audit repairs and never blocks: any summary is better than none.
package summarize
