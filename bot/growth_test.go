package bot

import (
	"testing"
	"time"

	"ebb/bot/command"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// For any message, the work of a turn besides the model takes time in proportion to its length.
func TestGrowth(t *testing.T) {
	b := testBot(t, func(c *Config) { c.Remember.Recall = view.RecallAlways })
	turn := func(s string) {
		e := sessions.Event{
			ID: 1, Role: sessions.RoleUser, State: sessions.Pending, Content: s, SenderNick: "张伟", SenderID: "u1", CreatedAt: time.Now(),
			Message: &sessions.Message{ConversationType: sessions.Group, Quote: &sessions.Quote{Nick: "王芳", Text: s}},
		}
		itsView := sessions.View{Session: sessions.Session{Key: group}, Pending: []sessions.Event{e}}
		opened := b.runner.OpenTurn(sessions.Lease{Key: group}, itsView)
		b.runner.MarkCandidates(opened)
		b.views.RecallQuery(opened.Asked)
		view.Shrink(opened.Asked, small.Usable(), 1)
		b.runner.BuildRequest(opened, opened.View)
		b.views.WithoutCommands(itsView.Pending)
	}
	for name, f := range map[string]func(string){
		"turn": turn,
		"commands": func(s string) {
			command.Commands.IsCommand("/" + s)
			command.Commands.IsKnown("/忘记" + s)
			command.Commands.IsCommand("/记忆 " + s)
		},
		"apology": func(s string) { wording.LanguageOf(s, "zh") },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
