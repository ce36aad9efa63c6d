// Package bot is the gateway itself: it turns messages into answers and loses nothing on the way. This is the tour for
// newcomers: eleven steps, the file of each, and what holds there.
//
//	DingTalk frame
//	 1 decode       raw frame -> sessions.Message            bot/dingtalk/frame.go
//	 2 accept       one transaction, then the ack            intake.go     -> sql/queries/inbox.sql
//	 3 mailbox      one turn at a time per session           sessions/serial/mailbox.go, sessions/lease/holder.go
//	 4 load         summaries + raw tail + pinned memory     turn.go       -> sql/queries/turn.sql
//	 5 assemble     fit into the window                      fit.go, assemble.go; recall.go, pinned.go: what memory adds
//	 6 loop         model <-> tools                          loop.go       -> bot/openai, bot/tools
//	 7 commit       events + counters + outbox, fenced       turn.go       -> sql/queries/turn.sql
//	 8 reply        outbox -> webhook or open API            outbox.go, queue.go, send.go -> bot/dingtalk/reply.go, codes.go
//	 9 account      provider usage corrects the estimate     turn.go (account), compaction/tokens
//	10 flush        >= 90 %, and more: memory_save forced    upkeep.go, extract.go, debts.go -> memory/extract
//	11 compact      >= 100 %: prefix -> summary              compact.go    -> compaction
//
// What holds at each step:
//
//  1. Wrong types never fail a message; only one without an id or a conversation can't be stored.
//  2. No commit, no 200. A message that comes twice is one row. A frame without a staff id gets the one that an earlier frame
//     had beside the same sender id, before the session's key is made of it. Only frames from the robot's organisation
//     count, and a sender id with two staff ids counts for neither.
//  3. A session has one owner at a time, by a lease with a term; every write names the term. A wake-up that is lost is
//     made up for by the sweep (bot.go).
//  4. What a turn reads is one snapshot. Messages stand in it in the order in which they were sent (createAt, then the order
//     of reading): a turn waits for those that this replica still stores, and a moment for what is sent together
//     (gather.go).
//     The messages are marked first. An attempt is counted for a panic, for data that the
//     storage refuses, and for the death of the process that marked them, and for nothing else (attempt.go). A message with
//     a counted attempt is taken alone, one at a time in each replica; after three it is set aside (triage.go).
//     What a message replies to is looked up in the log first, under the lease (quotes.go).
//  5. Assembling is pure, and a request differs from the last one only at its end: prompt caches hold. Pinned memory is
//     read anew with each compaction alone, and recall stands right before the question, in that turn's requests alone.
//  6. A tool call is recorded before it runs; after a crash one that may have had an effect is not repeated unasked.
//  7. All of a turn or nothing. While the database is away the commit is tried again: an answer is not thrown away.
//  8. The row was there before the send and is marked after it. It decides what is sent: only the first try goes from memory,
//     each later one claims the row, and so does each later part of a long reply. A reply is sent again under the same
//     key, where its way has keys.
//  9. Our own count is corrected by what providers report, and never the other way round.
//  10. A flush succeeds with a stored row or an explicit "nothing to save"; anything else is owed, and read from the
//     log later, in the background until it comes through. Every trigger is the same function over the same range.
//  11. Every path that compacts comes through compact, which contains the flush. A failed compaction changes nothing.
//
// No transaction, lock of the database or pooled connection is held while a model or DingTalk is asked. Steps 9 to 11
// run after the reply was sent, and their failures never reach the group; only a context that would overflow is
// compacted before the model is asked, within a deadline, with the emergency view behind it (assemble.go).
//
// Which replica is connected to DingTalk is settled in standby.go. At a stop (drain.go) intake ends, turns in flight finish,
// active sessions are flushed, the most unsaved first, and the leases are handed over; one in which somebody waits goes first
// (handover.go). After a kill nothing of that runs, and nothing is lost for it: pending messages and
// unsent replies are rows that the next owner finds.
//
// What nobody waits for is in the background (debts.go, chores.go, digest.go): owed flushes, sessions at rest, what expired,
// scopes that hold too much, rows without an index, and each group's day as a digest. Each of these asks the model one
// thing at a time, digests four; flushes and digests begin within a quarter of what a session may spend in a day. The tour
// of memory itself is the memory package's.
//
// The seams to the outside are model.go, transport.go and tool.go; adapters.go fits the model to memory and compaction.
// Commands that people send are in commands.go and the files named command_: /memory and /export in command_memory.go,
// /forget in command_forget.go. The words that Ebb says itself are in phrases.go and told.go, what people are told of
// errors in errors.go, figures for Prometheus in metrics.go, and the account that a process leaves at its end in report.go.
//
// Whatever arrives, memory is bounded: so many turns are in hand, each with one message or 256 KiB of them, and so many calls of the model under way, and who waits for
// either takes turns by conversation (fair.go). Messages wait in the log, and replies beyond a few of each conversation
// are not made before the earlier ones are sent (outbox.go).
//
// The parts are put together in cmd/bot/gateway from what bot/config reads. The equipment (demo, benchmarks, fault injection,
// search evaluation) is cmd/lab, a program of its own.
//
// # Decisions
//
// Waiting messages are answered together in one turn, so that a busy group is not answered late and out of context;
// one that was in a turn which broke is taken alone.
// Maintenance has mailboxes of its own, so that a slow summary never delays an answer; the two meet in the storage,
// where a compaction moves a cursor by compare-and-swap and a turn only ever appends.
package bot
