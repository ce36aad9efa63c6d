// Package bot puts the parts of the gateway together and runs them. This is the tour for newcomers: eleven steps, the
// package of each, and the guarantee of each.
//
//	DingTalk frame
//	 1 decode       raw frame -> sessions.Message            bot/dingtalk/frame/frame.go
//	 2 accept       one transaction, then the ack            intake.go        -> sql/queries/inbox.sql
//	 3 mailbox      one turn at a time per session           sessions/serial, sessions/lease
//	 4 load         summaries + raw tail + pinned memory     turn/slot        -> sql/queries/turn.sql
//	 5 assemble     fit into the window                      view; turn/answer/request.go
//	 6 loop         model <-> tools                          turn/answer/ask.go -> bot/openai, bot/tools
//	 7 commit       events + counters + outbox, fenced       turn/turn.go     -> sql/queries/turn.sql
//	 8 reply        outbox -> webhook or open API            outbox           -> bot/dingtalk
//	 9 account      provider usage corrects the estimate     turn/answer/account.go, compaction/tokens
//	10 flush        >= 90 %, and more: memory_save forced    upkeep/flush.go  -> memory
//	11 compact      >= 100 %: prefix -> summary              upkeep/compact.go -> compaction
//
// A slash command leaves this way at step 4: turn/choice/triage.go finds it, command answers it in place of steps 5 and 6.
//
// # Packages
//
// Each part is a package below this one. Its constructor takes the parts that all share, parts.Shared, and the ports that it
// declares beside their use. Imports point downward only; the table in cmd/bot/imports_test.go decides.
//
//	bot                                    New, Run, intake, the drain, metrics, the restart report
//	turn   command   upkeep   leader       a turn, its command, the work besides turns, the stream connection
//	outbox   view                          replies on their way, requests and their size
//	turn/slot   choice   answer            the stages of a turn: a place for it, what it answers, the model's answer
//	blame                                  the parts at fault for a refused request
//	manage                                 actions of members, administrators and operators: commands and command line
//	robots                                 the transports of several bots as one
//	wording   chat   gate                  fixed words, ports to transport and tools, admission of model calls
//	console                                pages and API for administrators, over ebb/memory/pages and manage
//	parts                                  clock, leases, settings, languages and timeouts that the parts share
//	sendfile                               types and names of files that replies send
//	rows                                   what the API and the command line show of a thing, in JSON
//	reload   access                        settings that a newer configuration file replaces, rules of who is served
//	approval                               calls of tools that need a person's approval: asked for, decided, expired
//	schedule                               reminders: set, changed, and stored as messages at their times by the leader
//	retention                              deletion of expired rows, on the leader
//	off                                    parts of a bot that do nothing, for programs that leave some out
//	admin                                  health, readiness, metrics, profiles
//
// All packages may use three mechanisms: ebb/sessions/periodic repeats background work at intervals, and
// ebb/sessions/retry repeats failed work after growing pauses. Package ebb/sessions/rules reads regular expressions that
// judge text from data files with examples.
//
// The files of this package are parts as values, each with the few things that it needs: intake, clicks, refuser, alarm, sweeper, drain,
// handover, lastFlush, restartReport, metrics. bot.go makes them, and no part knows the whole.
//
// A turn goes through stages that each take a value and return one. turn/turn.go reads from top to bottom: a slot.Slot, a
// choice.Choice of its messages, an answer.Answer, a commit.
//
// Package turn declares the ports Upkeep, Commands and Outbox, and imports none of those packages. The adapters
// bot/dingtalk, bot/tools and bot/openai implement the ports of chat and of ebb/sessions/llm, the one port to models.
// bot/dingtalk/markdown cuts long texts into sound pieces.
// cmd/bot/gateway composes all of it from what bot/config reads. The equipment (demo, benchmarks, fault injection, search
// evaluation) is cmd/lab, a program of its own.
//
// Package tools/mcp offers the tools of other programs to the conversations that the configuration names. Package media reads the pictures and
// files of messages in the turn that answers them, with media/document, which parses them in a child process.
//
// # Guarantees
//
//  1. Wrong types never fail a message; only one without an id or a conversation can't be stored.
//  2. No commit, no 200. A message that arrives twice is one row. A frame without a staff id gets the id that an earlier frame
//     had next to the same sender id, before the session's key is built. Only frames from the robot's organization
//     count, and a sender id with two staff ids counts for neither.
//  3. A session has one owner at a time, by a lease with a term; every write names the term. The sweep (sweep.go) makes up for
//     a lost wake-up.
//  4. A turn reads one snapshot. Its messages are in the order of sending (createAt, then the order of reading). A turn
//     waits for messages that this replica still stores, and briefly for messages sent together (turn/slot/gather.go).
//     The messages are marked first. An attempt is counted for a panic, for data that the storage refuses, and for the death
//     of the process that marked them, and for nothing else (turn/turn.go). A message that fell
//     with two processes is narrowed down by halves (turn/slot/suspects.go). After three attempts it is a dead letter
//     (turn/choice/triage.go). Quotes are looked up in the log first, under the lease (view/quotes.go).
//  5. Assembling is pure, and a request differs from the last one only at its end: prompt caches hold. Pinned memory is
//     read again only with a compaction. Recall stands right before the question, only in that turn's requests.
//  6. A tool call is recorded before it runs. After a crash a call that may have had an effect is not repeated unasked.
//     A /stop ends the model's work, and the words so far are committed (turn/slot/watch.go, turn/stop.go). It ends a turn
//     that waits for a slot at once (turn/slot/queue.go).
//  7. A turn commits as a whole or not at all. While the database is unavailable the commit is retried: an answer is not lost.
//  8. The row exists before the send and is marked after it. Only the first attempt is made from memory. Each later attempt,
//     and each later part of a long reply, claims the row. A reply is sent again under the same idempotency key, where the
//     API has keys.
//     A reminder becomes a message in the transaction that moves it to its next time. So each time has one message and one turn.
//  9. Reports of providers correct our own count, and never the other way round.
//  10. A flush succeeds with a stored row or an explicit "nothing to save". Any other range is owed: the background reads it
//     from the log later. Every trigger calls the same function over the same range.
//  11. Every compaction goes through upkeep.Worker.Compact, which contains the flush. A failed compaction changes nothing.
//
// No transaction, lock of the database or pooled connection is held during a call of a model or of DingTalk. Steps 10 and 11
// run after the reply was sent, and their failures never reach the group. Only a context that would overflow is compacted
// before the model is called, within a deadline, with the emergency view as the fallback (view/view.go).
//
// At a stop (drain.go) intake ends, turns in flight finish, active sessions are flushed, the most unflushed first, and the
// leases are handed over. A session with waiting messages goes first (handover.go). A kill skips all of that and loses
// nothing: pending messages and unsent replies are rows that the next owner finds.
//
// Background work (upkeep/overdue.go, tidy.go, digest.go) covers owed flushes, idle sessions, expired rows, scopes with too
// many facts, rows without an index, and daily digests. Each kind makes one model call at a time, digests four. Flushes and
// digests begin within a quarter of a session's daily tokens.
//
// Memory of the process is bounded: a fixed number of turns, each with one message or 256 KiB of them, and a fixed number of
// concurrent model calls. Waiting conversations are served round-robin (gate/fair.go). Messages wait in the log, and a
// conversation with several unsent replies gets no further turn until they are sent.
//
// # Forms
//
// A message, from the frame to the request:
//
//	payload.DataFrame        the frame, a type of DingTalk's SDK            bot/dingtalk/stream/link.go
//	value.Object             its JSON, whose types may be wrong           bot/dingtalk/value/value.go
//	sessions.Message         what is known of it                          sessions/message.go
//	dbsqlc.MessageAddParams  columns, and JSON of the rest                sql/conversation/accept.go
//	dbsqlc.TurnMarkRow       the row that a turn takes                    sql/conversation/turn.go
//	sessions.Event           with its message, in View and Choice         sessions/event.go
//	llm.Message              as a model reads it                          sessions/llm/model.go
//	openai.message           as its provider accepts it                   bot/openai/messages.go
//
// A reply, from the answer of the provider to DingTalk:
//
//	openai.answer            the stream so far                            bot/openai/answer.go
//	llm.Response             a whole answer, or calls of tools            sessions/llm/model.go
//	answer.Answer            a turn's, with the sessions.TurnResult of its commit  bot/turn/answer/answer.go
//	dbsqlc.TurnReplyParams   the row                                      sql/conversation/commit.go
//	sessions.Outgoing        a stored reply, on its way                   sessions/message.go
//	outbox.pending           its place in a queue, without its text       bot/outbox/queue.go
//	dbsqlc.OutboxClaimRow    the row, for a later attempt                 sql/conversation/outbox.go
//	dingtalk.message         a part of it                                 bot/dingtalk/markdown.go
//	dingtalk.webhookBody     JSON, or apiBody of the open API             bot/dingtalk/webhook.go
//
// And back, to the row of the reply:
//
//	chat.Sent                or chat.SendError                            bot/chat/transport.go
//	outbox.attempt           the sessions.SendOutcome, and what its queue does  bot/outbox/attempt.go
//	dbsqlc.OutboxSettleParams   or OutboxPauseParams                      sql/conversation/outbox.go
//
// # Goroutines
//
// Each file that starts some, and the bound and the end of each. A test compares the list with the code.
//
//	bot/bot.go                    each background task, the listener, the heartbeats   one each, to the end of the drain
//	bot/sweep.go                  a sweep when replicas change                         one a notification, within CommitTimeout
//	bot/alarm.go                  a notice to administrators                           one a fault of a model, awaited by the drain
//	bot/refuse.go                 a refusal to a person without access                 8 at once, refusalTime each
//	bot/drain.go                  handing over, and flushes of idle sessions           one each, to the deadline of the drain
//	bot/last_flush.go             last flushes                                         maxShutdownFlushes at once, to the deadline of the drain
//	bot/leader/stream.go          the stream connection                                one, to the end of leadership or the stop
//	bot/dingtalk/stream/stream.go the retirement of a replaced connection              one a connection, within the drain of it
//	bot/dingtalk/stream/link.go   reader, keep-alive, and each frame                   two a connection; frames by maxHeldFrames, presses by maxClicks
//	bot/dingtalk/card/live.go     the frames of a running answer                       one a turn, to the end of its term or answer
//	bot/dingtalk/reaction/reaction.go   the mark on a question                         one a turn, setTime
//	bot/dingtalk/reaction/remove.go     the removal of marks                           8 at once, awaited by the task
//	bot/robots/robots.go          the transport of a bot                               one a bot, to the end of its run
//	bot/outbox/outbox.go          the replies of a conversation                        one a conversation with unsent ones
//	bot/turn/slot/queue.go        the watch of a waiting turn                          one a waiting turn
//	bot/turn/slot/watch.go        the watch of a running turn                          one a running turn
//	bot/upkeep/digest.go          digests                                              4 at once, awaited by the task
//	bot/upkeep/requests.go        compactions by hand                                  the slots of upkeep, awaited by the task
//	bot/openai/calling.go         a try of a model that failed before                  one a call, to the deadline of the call
//	bot/tools/mcp/pool.go         the connection to a server                           one a server, to the stop
//	bot/tools/mcp/connection.go   the wait for the end of a connection                 one a connection
//	bot/tools/mcp/link.go         a ping after a silent call                           one a call, within pingTime
//	bot/media/document/confine.go the watch of a parser's memory and parent           one, to the end of the child process
//	sessions/lease/holder.go      a heartbeat                                          4 within a time to live, each to its timeout
//	sessions/serial/mailbox.go    the work of a session                                one a session with work
//	sql/pg/batch.go               a batch of requests                                  batchLanes at once
//	sql/limits/day.go             a new sum of the day's tokens                        one at a time
//	sql/search/meaning.go         a search by meaning                                  one a search, to the deadline of recall
//	sql/localpg/localpg.go        the watch of the private server                      one, to its end
//	cmd/bot/gateway/gateway.go    the admin server                                     one, to the end of the process
//	cmd/bot/gateway/embed.go      the filling of vectors                               one, awaited by the stop
//	cmd/bot/gateway/servers.go    a check of a server of tools                         one a server, awaited
//	cmd/bot/main.go               the wait for signals                                 one, to the end of the process
//	cmd/bot/setup/terminal.go     the reader of an answer                              one a question, to its line or the end of the process
//	cmd/bot/cmd_chat.go           the reader of the terminal                           one, to the end of the input
//	cmd/bot/cmd_doctor.go         a check of a model or a bot                          one each, awaited
//	cmd/bot/cmd_import.go         the heartbeats of an import                          one, awaited
//
// # Decisions
//
// One turn answers all waiting messages, so that a busy group is not answered late and out of context. A message whose
// turn failed is taken alone.
// Maintenance has mailboxes of its own, so that a slow summary never delays an answer. The two meet in the storage: a
// compaction moves a cursor by compare-and-swap, and a turn only appends.
package bot
