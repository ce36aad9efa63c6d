// Package summarize turns a range of events into summaries that are ready to commit.
//
//	events (From, Through] ── transcript ── model ── gate ── audit ──────────────────── Draft
//	        chunk by chunk                     │        │ └ one repair ── gate ── heal ──┘
//	                                           └ retry, then the chat's model, then an error that changes nothing
//
// A model that finds a request too long gets a smaller one, never the same request again. The audit repairs and never blocks:
// a summary that lacks an identifier is better than none. A failed roll-up does not fail the compaction; the next one tries
// again.
package summarize
