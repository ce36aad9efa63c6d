// Package reconcile compares a new fact with the stored facts of its scope: it is a duplicate, a correction, an older value,
// or new.
//
//	ledger.go      [Ledger.Decide] decides by time: the fact that was said later holds
//	correction.go  near duplicates, and corrections by their words
//	reschedule.go  corrections that only move a date
package reconcile
