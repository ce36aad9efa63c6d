// Package reconcile compares a new fact with the stored facts of its scope: it is a duplicate, a correction, an older
// value, or new.
package reconcile
