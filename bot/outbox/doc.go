// Package outbox delivers committed replies, in the order of each conversation. The rows in the storage decide which
// replies are sent.
package outbox
