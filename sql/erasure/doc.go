// Package erasure erases events, forgets facts, messages and people, and deletes sessions.
//
// An erasure is a plan and its execution. The plan says what goes: sessions, events, facts, rows. It is read first, without locks: plan.go
// for a person, memory.go for a fact, message.go for a message. A preview shows the plan that a confirmation executes (preview.go). The
// execution locks the sessions whose rows change, in the order of their keys, and reads the rest of the plan under the locks.
//
// Summaries that repeat erased content lose these lines or are written again, and views go back before them. An erasure of a person, a fact
// or a message reads the log before it locks a session, and the rest under the lock. Rows are found by ids where ids lead to them, and
// by likeness elsewhere; package ebb/memory/similarity lists these cases.
package erasure
