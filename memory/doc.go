// Package memory keeps facts beyond the window of a conversation: the vocabulary and the storage ports. The model saves
// facts in its turn, or a flush extracts them from the log before a compaction.
//
// A flush is no turn. It reads the events after the session's flush cursor, forces the model to call memory_save, and
// succeeds only with a stored row or an explicit "nothing to save". A failed flush is owed, and reads the log later with
// the same effect.
//
// # Tour
//
// The steps of a fact. Turns and flushes share all of them from step 3 on.
//
//	1 when       candidates, idle sessions, debts           classify, debts.go -> bot/upkeep
//	2 ask        a range of the log as a request            extract
//	3 read       the call's arguments, item by item         draft
//	4 refuse     credentials, instructions, junk            classify, sessions/redact
//	5 attribute  speaker, time, events                      draft
//	6 route      scope and expiry                           draft
//	7 date       tomorrow -> tomorrow (2026-11-22)          dates
//	8 reconcile  known, corrected, or new                   reconcile
//	9 store      facts, cursor, receipt in one transaction  store.go -> sql/facts
//
// Reading and upkeep:
//
//	readers         one condition                       Reader -> sql/facts/reader.go, MemoriesReadable in sql/queries/search.sql
//	search          terms, candidates, ranking          rank -> sql/search, sql/index
//	meaning         vectors, filled in the background   embed -> sql/vectors
//	read            virtual paths                       show -> bot/tools
//	pinned, recall  at the head, next to the question   source.go -> bot/view, bot/turn/answer/recall.go
//	consolidation   scopes that hold too much           consolidate -> sql/facts
//	digest          a group's day                       digest.go -> sql/facts, bot/upkeep
//	rights          see, take along, forget, promote    rights.go -> sql/facts, sql/erasure, bot/command
//
// # Decisions
//
// The model labels a fact, code decides its scope: no text can make a fact readable to more people. The speaker of a
// fact is found in the log by common words; the model's answer is only a hint. Rows are inserted and superseded, never
// rewritten. The later statement holds, not the later row. A log that is read twice, or late, yields the same facts.
// Search needs no extension of PostgreSQL: one column of hashes and one index find the candidates. The ranking uses
// neighbours, sittings and speakers, so it is Go.
package memory
