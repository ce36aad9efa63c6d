// Package outbox delivers committed replies, in the order of each conversation.
//
// The rows of the storage decide what is sent. A reply goes out from memory once, right after its commit. Each later try and
// each later part claims its row first.
package outbox
