package turn

import (
	"testing"
	"time"

	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// For any message, the work of a turn besides the model takes time in proportion to its length.
func TestGrowth(t *testing.T) {
	r, key := testRunner(t), sessions.NewKey("robot", "c1", "")
	turn := func(s string) {
		e := sessions.Event{
			ID: 1, Role: sessions.RoleUser, State: sessions.Pending, Content: s, SenderNick: "张伟", SenderID: "u1", CreatedAt: time.Now(),
			Message: &sessions.Message{ConversationType: sessions.Group, Quote: &sessions.Quote{Nick: "王芳", Text: s}},
		}
		itsView := sessions.View{Session: sessions.Session{Key: key}, Pending: []sessions.Event{e}}
		opened := r.openTurn(sessions.Lease{Key: key}, itsView, 0)
		r.markCandidates(opened)
		r.views.RecallQuery(opened.Asked)
		view.Shrink(opened.Asked, usable, 1)
		r.buildRequest(opened, opened.View)
		r.views.WithoutCommands(itsView.Pending)
	}
	for name, f := range map[string]func(string){"turn": turn, "apology": func(s string) { wording.LanguageOf(s, "zh") }} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
