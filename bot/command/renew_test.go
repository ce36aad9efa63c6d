package command_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// A fresh start says that memory has what matters only where it was saved.
func TestNewSaysWhatIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
		renewed := func(id string) string {
			w.Post(bottest.Said("q"+id, "alice", "记住：上线定在 5 月 20 日"))
			bottest.After(time.Minute)
			w.Post(bottest.Said(id, "root", "/新对话"))
			bottest.After(time.Minute)
			return w.Wire.Texts()[len(w.Wire.Sends())-1]
		}
		m.Mu.Lock()
		m.Flush = func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Unreachable, Err: errors.New("connection refused")}
		}
		m.Mu.Unlock()
		bottest.Want(t, "answer without memory", renewed("n1"), wording.Say(wording.RenewedOwed, "zh"))
		m.Mu.Lock()
		m.Flush = nil
		m.Mu.Unlock()
		bottest.Want(t, "answer with memory", renewed("n2"), wording.Say(wording.Renewed, "zh"))
	})
}
