package choice_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
)

// Turns that ask no model: a bare mention, an old backlog, withheld content.
func TestFixedWords(t *testing.T) {
	t.Parallel()
	over := bottest.Said("m", "alice", "")
	over.OverQuota = true
	for name, c := range map[string]struct {
		messages []sessions.Message
		wait     time.Duration
		want     string
	}{
		"bare mention":  {[]sessions.Message{bottest.Said("m", "alice", "  ")}, 0, "我在"},
		"over quota":    {[]sessions.Message{over}, 0, "额度"},
		"status":        {[]sessions.Message{bottest.Said("m", "alice", "/状态")}, 0, "可用空间"},
		"help":          {[]sessions.Message{bottest.Said("m", "alice", "/帮助")}, 0, "`/忘记 上一条`"},
		"stale backlog": {[]sessions.Message{bottest.Said("m", "alice", "早上好"), bottest.Said("n", "bob", "在吗")}, 40 * time.Minute, "没能及时回答"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shelf := bottest.NewShelf()
				a := bottest.Start(t, bottest.Setup{Name: "a", Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}})
				if c.wait > 0 {
					a.Store.Fail(func(op string) error { // accepts, and gets to nothing
						if op == "place" || op == "accept" {
							return nil
						}
						return bottest.ErrAway
					})
				}
				for _, m := range c.messages {
					a.Post(m)
				}
				synctest.Wait()
				w := a
				if c.wait > 0 {
					bottest.After(c.wait)
					w = bottest.Start(t, bottest.Setup{Name: "b", Shelf: shelf})
					bottest.After(2 * time.Second)
				}
				if got := w.Wire.Texts(); len(got) != 1 || !strings.Contains(got[0], c.want) {
					t.Errorf("replies %q, want one with %q", got, c.want)
				}
				bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 0)
				for _, e := range shelf.Mem.Events(t.Context(), bottest.Group) {
					if e.State != sessions.Done {
						t.Errorf("event %d is %s", e.ID, e.State)
					}
				}
			})
		})
	}
}

// A backlog of a day is reported in one message, however long it is.
func TestLongStaleBacklog(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprint("alone each ", alone), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shelf := bottest.NewShelf()
				if _, err := shelf.Mem.Leases.Beat(t.Context(), "old"); err != nil {
					t.Fatal(err)
				}
				for i := range 50 {
					if _, err := shelf.Mem.Inbox.Accept(t.Context(), "old", bottest.Group, bottest.Said(fmt.Sprint("m", i), "alice", "在吗")); err != nil {
						t.Fatal(err)
					}
				}
				bottest.After(24 * time.Hour)
				w := bottest.Start(t, bottest.Setup{Shelf: shelf, Config: func(c *bot.Config) { c.AloneEach = alone }})
				bottest.After(time.Minute)
				if n := len(w.Wire.Sends()); n != 1 {
					t.Errorf("%d replies for one backlog", n)
				}
			})
		})
	}
}

// Commands and their answers are in the log, and in no request: the model neither reads them nor pays for them.
func TestCommandsAreNoConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Say("m1", "alice", "hello")
		size := w.State(bottest.Group).TotalTokens
		w.Say("m2", "alice", "/status")
		w.Say("m3", "bob", "/help")
		bottest.Want(t, "size of the context after commands", w.State(bottest.Group).TotalTokens, size)
		w.Say("m4", "alice", "go on")
		rs := w.Model.Requests("chat")
		for _, m := range rs[len(rs)-1].Messages[1:] {
			if strings.Contains(m.Content, "/status") || strings.Contains(m.Content, "/help") {
				t.Errorf("the model reads %q", m.Content)
			}
		}
		bottest.Want(t, "events in the log", len(w.Store.Mem.Events(t.Context(), bottest.Group)), 8)
	})
}
