// Package memory keeps facts beyond the window of a conversation. A flush extracts them from the log before a
// compaction (package extract), or the model saves them in its turn. Each has a scope, a subject and the events of its
// origin.
//
// A flush extracts from a range of the log, and is no turn. It reads the events after the session's flush cursor,
// forces the model to call memory_save, and succeeds only with a stored row or an explicit "nothing to save". Its
// messages enter neither the log nor the view, so that a late flush is as good as an early one. A failed flush is owed,
// and reads the log later.
//
// This package holds the vocabulary and the storage ports. Each package below it does one job:
//
//	text         folds, cuts into words, stems, compares
//	dates        finds dates in a text and computes the days that they mean
//	classify     junk, instruction, personal data, credential, candidate, recall question
//	draft        from a memory_save call to drafts with source and scope
//	reconcile    duplicate, correction, reschedule
//	extract      reads a range of the log with a model: the flush
//	consolidate  fewer facts for a scope that holds too many
//	embed        fills in vectors in the background
//	rank         finds and orders candidates for a question
//	show         memories, hits and events as text
//
// # Tour
//
// The steps of a fact, with the file of each. Turns and flushes share all of them from step 3 on.
//
//	1 when       candidates, idle sessions, debts           classify/marks.go; debts.go -> bot/upkeep/facts.go, bot/upkeep/overdue.go
//	2 ask        a range of the log as a request            extract/flush.go, parts.go, flush.md
//	3 read       the call's arguments, item by item         draft/save.go
//	4 refuse     credentials, instructions, junk            classify/, sessions/redact/secret.go
//	5 attribute  speaker, time, events                      draft/attribute.go, chat.go
//	6 route      scope and expiry                           draft/route.go
//	7 date       tomorrow -> tomorrow (2026-11-22)          dates/
//	8 reconcile  known, corrected, or new                   reconcile/
//	9 store      facts, cursor, receipt in one transaction  store.go -> sql/facts/save.go, sql/facts/flush.go
//
// Reading and upkeep:
//
//	readers         one condition                       Reader -> sql/facts/reader.go, MemoriesReadable in sql/queries/search.sql
//	search          terms, candidates, ranking          rank/ -> sql/search/search.go, sql/index/terms.go
//	meaning         vectors, filled in the background   vectors.go, embed/ -> sql/vectors/embeddings.go, sql/vectors/nearest.go
//	read            virtual paths                       show/ -> bot/tools
//	pinned, recall  at the head, next to the question   source.go -> bot/view/pinned.go, bot/turn/recall.go
//	consolidation   scopes that hold too much           consolidation.go, consolidate/ -> sql/facts/consolidate.go
//	digest          a group's day                       digest.go -> sql/facts/digest.go, bot/upkeep/digest.go
//	rights          see, take along, forget, promote    rights.go, show/export.go -> sql/facts/rights.go, sql/erasure/forget.go,
//	                                                    sql/erasure/person.go, sql/erasure/erase.go, bot/command/memory.go,
//	                                                    bot/command/forget.go, cmd/bot/cmd_memory.go
//
// docs/memory.md describes all of it for users.
//
// # Decisions
//
// The model labels a fact, code decides its scope (package draft): no text can make a fact readable to more people.
// The speaker of a fact is found in the log by common words; the model's answer is only a hint.
// Rows are inserted and superseded, and their content is never rewritten. The later statement holds, not the later row.
// A log that is read twice, or late, yields the same facts.
// Known facts are shown after the transcript, so that old ones never displace new ones.
// People choose their nicks: in the roster an id or a label takes precedence.
// Search needs no extension of PostgreSQL: one column of hashes and one index find the candidates. The ranking uses
// neighbours, sittings and speakers, so it is Go.
package memory
