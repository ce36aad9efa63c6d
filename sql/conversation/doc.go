// Package conversation stores messages, leases, turns and replies: what it takes to answer a message once.
//
// Accepting a message is one statement, and so is committing a turn; beginning a turn is two.
package conversation
