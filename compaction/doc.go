// Package compaction keeps a conversation inside a model's context window: it counts tokens, decides when and plans what
// leaves the view, has it told in a summary and checks that summary before anything moves.
//
// Most parts are pure and tested alone: [Counter]; [Window], the budgets; the planner ([Policy.Decide], [Policy.Plan],
// [Policy.Prune], [Policy.Offload]); [Scribe], which writes history as data; and what stands between a draft and the view:
// the gate ([CheckSummary]), the audit ([AuditSummary], [Heal]) and [Policy.Progress]. [Engine] calls a model, by a
// [Summarizer]; the store commits. Everything that one policy does differently from another is data in [Policy].
//
// # The way of a summary
//
//	events (From, Through] ── Scribe ── model ── gate ── audit ──────────────────── Draft
//	        chunk by chunk                 │        │ └ one repair ── gate ── heal ──┘
//	                                       └ again, then the chat's model, then an error that changes nothing
//
// # Decisions
//
// The log is never touched: a compaction moves a cursor and adds a summary, so a failed one changes nothing at all.
// The plan is made on a snapshot and committed by compare-and-swap; messages that arrive meanwhile stay raw.
// A summary that is shorter than 1.5 % of its source is suspicious, but above 50 tokens it may be as short as it
// likes: a large source of small talk has little to tell.
// Requests are sized by the transcript as it is written, and a model that finds one too long gets a smaller one, never
// the same again. Where summaries have a model of their own, the chat's is the last rung.
// The audit mends and never blocks: a summary that lacks an identifier is better than none, and better still with the
// identifier appended. It looks at what the model was shown, so that nobody is blamed for what was cut out.
// Segments that have become too many are rolled up within the compaction that finds it so. That part may fail by itself:
// the range of the compaction is told either way, and the next one tries again.
package compaction
