// Package conversation stores messages, leases, turns and replies, so that a message is answered once.
package conversation
