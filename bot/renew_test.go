package bot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/sessions"
)

// A fresh start says that memory has what matters only where it was saved.
func TestNewSaysWhatIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{}
		w := start(t, setup{model: m, config: func(c *Config) { c.Admins = []sessions.UserID{"u-root"} }})
		renewed := func(id string) string {
			w.post(said("q"+id, "alice", "记住：上线定在 5 月 20 日"))
			after(time.Minute)
			w.post(said(id, "root", "/新对话"))
			after(time.Minute)
			return w.wire.texts()[len(w.wire.sends())-1]
		}
		m.mu.Lock()
		m.flush = func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Unreachable, Err: errors.New("connection refused")}
		}
		m.mu.Unlock()
		want(t, "answer without memory", renewed("n1"), wording.Say(wording.RenewedOwed, "zh"))
		m.mu.Lock()
		m.flush = nil
		m.mu.Unlock()
		want(t, "answer with memory", renewed("n2"), wording.Say(wording.Renewed, "zh"))
	})
}
