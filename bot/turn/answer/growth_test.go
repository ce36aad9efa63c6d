package answer

import (
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/bot/turn/choice"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// usable is the tokens of a request's messages in the tests.
const usable = 12000

// testAsker builds requests, without a store or a model.
func testAsker(t *testing.T) *Asker {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	window := compaction.Window{Context: 16000, Reserve: 4000, Threshold: 4000, Share: 0.5, FlushRatio: 0.9, Summary: 400}
	p := &parts.Shared{
		Counter: counter, Languages: wording.Languages{Preset: "zh", Assigned: func(sessions.ConversationID) string { return "" }}, Location: time.UTC, Now: time.Now,
		Current: reload.New(reload.Values{Compaction: compaction.Settings{Enabled: true, Window: window, Policy: compaction.Policies["token_budget"]}}),
	}
	views, err := view.New(p, nil, nil, command.Commands, view.Options{Outside: chat.NoTools{}, Remember: view.Remember{Recall: view.RecallAlways}})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Shared: p, Views: views})
}

// For any message, the work of a turn besides the model takes time in proportion to its length.
func TestGrowth(t *testing.T) {
	k, key := testAsker(t), sessions.NewKey("robot", "c1", "")
	turn := func(s string) {
		e := sessions.Event{
			ID: 1, Role: sessions.RoleUser, State: sessions.Pending, Content: s, SenderNick: "张伟", SenderID: "u1", CreatedAt: time.Now(),
			Message: &sessions.Message{ConversationType: sessions.Group, Quote: &sessions.Quote{Nick: "王芳", Text: s}},
		}
		itsView := sessions.View{Session: sessions.Session{Key: key}, Pending: []sessions.Event{e}}
		q := question{made: choice.Choice{Lease: sessions.Lease{Key: key}, View: itsView, Kind: choice.Ask, Asked: []sessions.Event{e}}}
		k.requests.views.Memory.RecallQuery(itsView.Session, q.made.Asked)
		view.Shrink(q.made.Asked, usable, 1)
		k.requests.build(q, q.made.View, false)
		k.requests.views.Words.WithoutCommands(itsView.Pending)
	}
	for name, f := range map[string]func(string){"turn": turn, "apology": func(s string) { wording.LanguageOf(s, "zh") }} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
