// Package compaction keeps a conversation inside a model's context window: it counts tokens, plans what leaves the
// view, has it told in a summary and checks that summary before anything moves.
//
// Five parts are pure and tested alone: [Counter], [Window] (the budgets), [Plan], the serializer ([Scribe]) and
// the gates ([CheckSummary], [Policy.Progress]). Two have effects: [Summarizer] calls a model, and the store commits.
// Everything that one policy does differently from another is data in [Policy].
//
// # Decisions
//
// The log is never touched: a compaction moves a cursor and adds a summary, so a failed one changes nothing at all.
// The plan is made on a snapshot and committed by compare-and-swap; messages that arrive meanwhile stay raw.
// A summary that is shorter than 1.5 % of its source is suspicious, but above 50 tokens it may be as short as it
// likes: a large source of small talk has little to tell.
// Requests are sized by the transcript as it is written, and a model that finds one too long gets a smaller one, never
// the same again. Where summaries have a model of their own, the chat's is the last rung.
package compaction
