package bot

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// Turns that ask no model: a bare mention, an old backlog, withheld content.
func TestFixedWords(t *testing.T) {
	t.Parallel()
	over := said("m", "alice", "")
	over.OverQuota = true
	for name, c := range map[string]struct {
		messages []sessions.Message
		wait     time.Duration
		want     string
	}{
		"bare mention":  {[]sessions.Message{said("m", "alice", "  ")}, 0, "我在"},
		"over quota":    {[]sessions.Message{over}, 0, "额度"},
		"status":        {[]sessions.Message{said("m", "alice", "/状态")}, 0, "可用空间"},
		"help":          {[]sessions.Message{said("m", "alice", "/帮助")}, 0, "`/忘记 上一条`"},
		"stale backlog": {[]sessions.Message{said("m", "alice", "早上好"), said("n", "bob", "在吗")}, 40 * time.Minute, "没能及时回答"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shelf := newShelf()
				a := start(t, setup{name: "a", shelf: shelf, model: &script{chat: hang}})
				if c.wait > 0 {
					a.store.fail(func(op string) error { // accepts, and gets to nothing
						if op == "place" || op == "accept" {
							return nil
						}
						return errAway
					})
				}
				for _, m := range c.messages {
					a.post(m)
				}
				synctest.Wait()
				w := a
				if c.wait > 0 {
					after(c.wait)
					w = start(t, setup{name: "b", shelf: shelf})
					after(2 * time.Second)
				}
				if got := w.wire.texts(); len(got) != 1 || !strings.Contains(got[0], c.want) {
					t.Errorf("replies %q, want one with %q", got, c.want)
				}
				want(t, "model calls", len(w.model.requests("chat")), 0)
				for _, e := range shelf.mem.Events(t.Context(), group) {
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
				shelf := newShelf()
				if _, err := shelf.mem.Beat(t.Context(), "old"); err != nil {
					t.Fatal(err)
				}
				for i := range 50 {
					if _, err := shelf.mem.Accept(t.Context(), "old", group, said(fmt.Sprint("m", i), "alice", "在吗")); err != nil {
						t.Fatal(err)
					}
				}
				after(24 * time.Hour)
				w := start(t, setup{shelf: shelf, config: func(c *Config) { c.AloneEach = alone }})
				after(time.Minute)
				if n := len(w.wire.sends()); n != 1 {
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
		w := start(t, setup{})
		w.say("m1", "alice", "hello")
		size := w.state(group).TotalTokens
		w.say("m2", "alice", "/status")
		w.say("m3", "bob", "/help")
		want(t, "size of the context after commands", w.state(group).TotalTokens, size)
		w.say("m4", "alice", "go on")
		rs := w.model.requests("chat")
		for _, m := range rs[len(rs)-1].Messages[1:] {
			if strings.Contains(m.Content, "/status") || strings.Contains(m.Content, "/help") {
				t.Errorf("the model reads %q", m.Content)
			}
		}
		want(t, "events in the log", len(w.store.mem.Events(t.Context(), group)), 8)
	})
}
