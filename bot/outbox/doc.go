// Package outbox delivers committed replies, in the order of each conversation.
package outbox
