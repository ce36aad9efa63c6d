// Package chat holds the ports to the outside of a turn: the transport that brings messages in and replies out, and the tools
// that a model may call.
package chat
