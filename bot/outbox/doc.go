// Package outbox delivers committed replies, in the order of each conversation.
//
// The rows in the storage decide which replies are sent. A reply goes out from memory once, right after its commit. Each
// later attempt and each later part claims its row first.
package outbox
