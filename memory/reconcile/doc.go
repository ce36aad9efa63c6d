// Package reconcile compares a new fact with the stored facts of its scope: it is a duplicate, a correction, an older
// value, or new. [Ledger.Decide] decides by time: the later statement holds.
package reconcile
