// Package turn runs turns: from the waiting messages of a session to a committed answer. It reads top to bottom in turn.go.
//
// No transaction, lock of the database or pooled connection is held while a model is asked.
package turn
