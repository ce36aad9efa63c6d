package chat

import (
	"context"

	"ebb/sessions"
)

// NoTools is a [Toolbox] without tools.
type NoTools struct{}

// Tools implements [Toolbox].
func (NoTools) Tools(sessions.ConversationID, sessions.ConversationType) []Tool { return nil }

// Version implements [Toolbox].
func (NoTools) Version() int64 { return 0 }

// MaxResultTokens implements [Toolbox].
func (NoTools) MaxResultTokens(string) int { return 0 }

// Away implements [Toolbox].
func (NoTools) Away(sessions.ConversationID, sessions.ConversationType) []string { return nil }

// Connected implements [Toolbox].
func (NoTools) Connected(context.Context, sessions.ConversationID, sessions.ConversationType, string) bool {
	return true
}

// Odd implements [Toolbox].
func (NoTools) Odd(sessions.ConversationID, sessions.ConversationType) []string { return nil }

// NoDisplay is a [Display] that shows no turn.
type NoDisplay struct{}

// Show implements [Display].
func (NoDisplay) Show(context.Context, Shown) Live { return nil }

// NoReceiver is the [Receiver] of a transport that accepts each message as it comes.
type NoReceiver struct{}

// AwaitReceived implements [Receiver].
func (NoReceiver) AwaitReceived(context.Context, sessions.ConversationID) {}
