// Package memory keeps what matters beyond any conversation's window: facts, drawn out of the log before compaction
// ([Flusher]) or saved by the model in its turn, each with its scope, its subject and the events it came from.
//
// A flush is an extraction over a range of the log, not a turn: it reads the events after the session's flush cursor,
// forces the model to call memory_save, and succeeds only with a stored row or an explicit "nothing to save". Its
// messages enter neither the log nor the view, so that a late flush is as good as an early one. What could not be
// flushed is owed, and read from the log later.
//
// # Tour
//
// The way of a fact, with the file of each step. Turns and flushes share all of it from step 3 on.
//
//	1 when       candidates, idle sessions, debts           classify/marks.go; debts.go -> bot/extract.go, bot/debts.go
//	2 ask        a range of the log as a request            flush.go, part.go, flush.md
//	3 read       the call's arguments, item by item         save.go
//	4 refuse     credentials, instructions, junk            classify/, sessions/redact/secret.go
//	5 attribute  who said it, when, in which events         attribute.go, chat.go
//	6 route      the scope, and how long it is kept         route.go
//	7 date       tomorrow -> tomorrow (2026-11-22)          dates/
//	8 judge      known, corrected, or new                   judge.go, near.go, text/
//	9 store      facts, cursor, receipt in one transaction  store.go -> sql/memory.go, sql/keep.go, sql/flushes.go
//
// What comes back, and what becomes of it:
//
//	who may read what   one condition                       Reader -> sql/readable.go, MemoriesReadable in sql/queries/search.sql
//	search              terms, candidates, ranking          rank/ -> sql/search.go and those named after it, sql/index.go
//	meaning             vectors, filled in the background   embed.go -> sql/embeddings.go, sql/dense.go, sql/near.go
//	read                virtual paths                       get.go, lines.go -> bot/tools
//	pinned, recall      at the head, beside the question    bot/pinned.go, bot/recall.go
//	fewer               scopes that hold too much           consolidate.go, consolidate.md -> sql/crowd.go
//	digest              a group's day                       digest.go -> sql/digest.go, bot/digest.go
//	rights              see, take along, forget, promote    rights.go, export.go -> sql/rights.go, sql/forget.go,
//	                                                        sql/forget_person.go, sql/erase.go, bot/command_memory.go,
//	                                                        bot/command_forget.go, cmd/bot/cmd_memory.go
//
// docs/memory.md tells what all of it does, for those who use it.
//
// # Decisions
//
// The model labels a fact, code decides its scope ([Route]): no text can make a fact readable to more people.
// Who said a fact is found in the log, by the words that both have: a model's word for it is only a hint.
// Rows are inserted and taken out of force, and what they say is never rewritten; what was said later holds, not what was
// stored later. A log that is read twice, or late, comes to the same facts.
// Known facts are shown after the transcript, so that old ones never crowd out new ones.
// Nicks are what people choose to write: in the roster an id or a label always wins over them.
// Search needs no extension of PostgreSQL: one column of hashes and one index bring the candidates, and the ranking, which
// wants neighbours, sittings and speakers, is Go.
package memory
