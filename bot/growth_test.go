package bot

import (
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// Whatever a message is made of, what a turn does with it besides asking the model takes time in proportion to its length.
func TestGrowth(t *testing.T) {
	b := testBot(t, func(c *Config) { c.Remember.Recall = RecallAlways })
	turn := func(s string) {
		e := sessions.Event{
			ID: 1, Role: sessions.RoleUser, State: sessions.Pending, Content: s, SenderNick: "张伟", SenderID: "u1", CreatedAt: time.Now(),
			Message: &sessions.Message{ConversationType: sessions.Group, Quote: &sessions.Quote{Nick: "王芳", Text: s}},
		}
		view := sessions.View{Session: sessions.Session{Key: group}, Pending: []sessions.Event{e}}
		opened := b.runner.open(sessions.Lease{Key: group}, view)
		b.runner.mark(opened)
		b.views.recallQuery(opened.asked)
		shrink(opened.asked, small.Usable(), 1)
		b.runner.request(opened, opened.view)
		b.views.talk(view.Pending)
	}
	for name, f := range map[string]func(string){
		"turn":     turn,
		"commands": func(s string) { isCommand("/" + s); isKnown("/忘记" + s); isCommand("/记忆 " + s) },
		"apology":  func(s string) { languageOf(s, "zh") },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
