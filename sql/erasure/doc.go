// Package erasure erases events, forgets facts, messages and people, and deletes sessions.
//
// Summaries that repeat erased content lose these lines or are written again, and views go back before them. An erasure of a person, a fact
// or a message reads the log before it locks a session, and the rest under the lock. Rows are found by ids where ids lead to them, and
// by likeness elsewhere; package ebb/memory/similarity lists these cases.
package erasure
