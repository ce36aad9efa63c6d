// Package conversation stores messages, leases, turns and replies, so that a message is answered once.
//
// Accepting a message is one statement, and so is committing a turn; beginning a turn is two.
package conversation
