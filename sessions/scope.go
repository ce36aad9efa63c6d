package sessions

import "context"

// Scope says who shares a session of a group.
type Scope string

// The scopes.
const (
	ScopeGroup  Scope = "group"  // all members share one session
	ScopeMember Scope = "member" // each member has one
)

// Key returns the key of the session that a message belongs to.
func (s Scope) Key(m Message) Key {
	if s == ScopeMember {
		return NewKey(m.RobotCode, m.ConversationID, m.SenderID)
	}
	return NewKey(m.RobotCode, m.ConversationID, "")
}

// Scopes keeps the scopes that commands chose for groups. A change moves nothing: each message stays in its session.
type Scopes interface {
	// PlaceOf reads what decides the session of a group's message, among the sessions that may have it.
	PlaceOf(ctx context.Context, m Message, among []Key) (Place, error)

	// ScopeOf reads the chosen scope of a group, named by the key of the session that all members would share; empty: none was chosen.
	ScopeOf(ctx context.Context, group Key) (Scope, error)

	// ChooseScope stores the scope of the group that a lease's session belongs to; empty removes it. Messages accepted
	// later follow it, in every session of the group.
	ChooseScope(ctx context.Context, l Lease, s Scope) error
}

// Place decides the session of a group's message, together with the configured scope.
type Place struct {
	Chosen Scope // empty: the configured one
	// Earlier is the first of the keys under which the message was stored, or was deleted with a session of the
	// conversation. A deletion holds for all ids of the sender. It is empty for a new message.
	Earlier Key
	// Waiting is the session with the sender's newest unanswered message; empty without one.
	Waiting Key
}
