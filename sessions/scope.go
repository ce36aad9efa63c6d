package sessions

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
