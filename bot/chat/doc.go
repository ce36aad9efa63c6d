// Package chat holds the ports of a turn to the outside: the transport of messages and replies, and the tools of the
// model.
package chat
