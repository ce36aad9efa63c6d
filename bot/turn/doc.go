// Package turn runs turns: from the waiting messages of a session to a committed answer. No transaction, database lock
// or pooled connection is held during a model call.
package turn
