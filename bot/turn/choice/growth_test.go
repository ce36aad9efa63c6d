package choice

import (
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// For any message, the choice of a turn takes time in proportion to its length.
func TestGrowth(t *testing.T) {
	c, key := testChooser(t), sessions.NewKey("robot", "c1", "")
	sessionstest.CheckGrowth(t, "choice", sessionstest.LongMessage, func(s string) {
		e := sessions.Event{
			ID: 1, Role: sessions.RoleUser, State: sessions.Pending, Content: s, SenderNick: "张伟", SenderID: "u1", CreatedAt: time.Now(),
			Message: &sessions.Message{ConversationType: sessions.Group, Quote: &sessions.Quote{Nick: "王芳", Text: s}},
		}
		c.open(sessions.Lease{Key: key}, sessions.View{Session: sessions.Session{Key: key}, Pending: []sessions.Event{e}}, 0)
	})
}
