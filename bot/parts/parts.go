// Package parts has what the parts of a replica share. bot.New makes it once, and each part takes it beside the few things that it
// alone needs.
package parts

import (
	"time"

	"ebb/bot/reload"
	"ebb/bot/wording"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/lease"
)

// Shared is common to the parts of a replica. It never changes. All fields are required.
type Shared struct {
	Leases    *lease.Holder
	Now       func() time.Time // the storage's clock: times that the storage wrote are compared with no other one
	Current   *reload.Current  // settings that a newer configuration file replaces
	Languages wording.Languages
	Location  *time.Location
	Counter   *tokens.Counter
	Draining  <-chan struct{} // closed when a stop begins

	CommitTimeout   time.Duration // one statement or transaction
	InlineDeadline  time.Duration // a compaction or flush that an answer waits for
	CompactDeadline time.Duration // another one
}

// Stopping reports whether a stop has begun.
func (s *Shared) Stopping() bool {
	select {
	case <-s.Draining:
		return true
	default:
		return false
	}
}

// Language is that of what a model writes about a session's conversation, such as summaries and facts.
func (s *Shared) Language(key sessions.Key) string {
	_, id := key.Conversation()
	return s.Languages.OfText(id, "")
}
