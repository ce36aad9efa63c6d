package dingtalk

import (
	"testing"

	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// The parts of a reply are made in time in proportion to its length.
func TestGrowth(t *testing.T) {
	sessionstest.CheckGrowth(t, "compose", sessionstest.LongMessage, func(s string) {
		compose(sessions.Reply{Text: s, Target: sessions.Target{ConversationType: sessions.Group, Mentions: []sessions.Mention{{Nick: s}}}})
	})
}
