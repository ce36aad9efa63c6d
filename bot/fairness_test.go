package bot

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/sessions"
)

// One place is enough for turns that compact before they go on, with the upkeep behind them.
func TestOneCallAtATimeIsEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inside atomic.Int64
		slow := func(answer llm.Response) func(context.Context, llm.Request) (llm.Response, error) {
			return func(context.Context, llm.Request) (llm.Response, error) {
				if n := inside.Add(1); n > 1 {
					t.Errorf("%d calls at once", n)
				}
				defer inside.Add(-1)
				<-time.After(100 * time.Millisecond)
				return answer, nil
			}
		}
		model := &script{chat: slow(text("all right")), flush: slow(saveCall("a fact")), summary: slow(llm.Response{Text: goodSummary, Finish: llm.FinishStop, Model: "fake"})}
		w := start(t, setup{model: model, config: func(c *Config) {
			c.MaxConcurrent = 1
			c.Compaction = smallOf("offload") // which compacts before the answer
		}})
		for i := range 30 {
			for _, conversation := range []string{"c1", "c2", "c3"} {
				m := said(fmt.Sprint(conversation, "-", i), "alice", strings.Repeat("what comes next? ", 60))
				m.ConversationID = sessions.ConversationID(conversation)
				w.post(m)
			}
			after(20 * time.Second)
		}
		want(t, "replies", len(w.wire.sends()), 90)
		if len(model.requests("summary")) == 0 {
			t.Error("nothing was compacted")
		}
	})
}

// Turns beyond the limit wait without a view of their session, and end at once when the bot stops. The next process
// answers their messages.
func TestRunningTurnsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		a := start(t, setup{name: "a", shelf: shelf, model: &script{chat: hang}, config: func(c *Config) { c.MaxConcurrent = 2 }})
		for i := range 50 {
			m := said(fmt.Sprint("m", i), "alice", "hello")
			m.ConversationID = sessions.ConversationID(fmt.Sprint("c", i))
			a.post(m)
		}
		synctest.Wait()
		want(t, "turns that began", a.store.called("begin"), 2*llm.TurnsPerCall)
		want(t, "calls of the model", len(a.model.requests("chat")), 2)
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the stop took %s", took)
		}
		want(t, "turns that began before the end", a.store.called("begin"), 2*llm.TurnsPerCall)
		b := start(t, setup{name: "b", shelf: shelf, config: func(c *Config) { c.MaxConcurrent = 2 }})
		after(10 * time.Second)
		want(t, "replies of the next", len(b.wire.sends()), 50)
	})
}

// A flood of messages in a group whose replies don't get out: they wait in the storage, not in memory, and are all answered when
// DingTalk takes replies again.
func TestFloodWaitsInTheStorage(t *testing.T) {
	t.Parallel()
	for alone, flood := range map[bool]int{false: 2000, true: 200} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Bool
			net := &wire{send: func(context.Context, sessions.Outgoing) (chat.Sent, error) {
				if !open.Load() {
					return chat.Sent{Via: "webhook"}, &chat.SendError{After: time.Second, Err: errAway}
				}
				return chat.Sent{Via: "webhook", Part: 1}, nil
			}}
			w := start(t, setup{wire: net, config: func(c *Config) { c.AloneEach = alone }})
			for i := range flood {
				w.post(said(fmt.Sprint("m", i), "alice", "hello"))
			}
			after(time.Minute)
			if n := w.bot.outbox.Waiting(); n > maxQueued {
				t.Errorf("%d replies wait in memory", n)
			}
			if n, most := len(w.model.requests("chat")), maxQueued+1; n > most {
				t.Errorf("%d answers were made without a reader, want at most %d", n, most)
			}
			open.Store(true)
			after(5 * time.Minute)
			for _, e := range w.store.mem.Events(t.Context(), group) {
				if e.State == sessions.Pending {
					t.Fatalf("event %d was never answered", e.ID)
				}
			}
			want(t, "replies in memory at the end", w.bot.outbox.Waiting(), 0)
		})
	}
}

// Long messages that waited together are answered as far as they fit. No request is larger than the window, and a
// message left for a later turn does not count as broken.
func TestLongMessagesAreNotMergedBeyondTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &script{chat: func(context.Context, llm.Request) (llm.Response, error) {
			<-time.After(time.Second)
			return text("read"), nil
		}}
		w := start(t, setup{model: model})
		for i := range 21 {
			w.post(said(fmt.Sprint("m", i), "alice", strings.Repeat("我们下周三上午在三号会议室开会。", 20<<10/48)))
		}
		after(5 * time.Minute)
		for _, e := range w.store.mem.Events(t.Context(), group) {
			if e.Role == sessions.RoleUser && e.State != sessions.Done {
				t.Errorf("event %d is %s", e.ID, e.State)
			}
		}
		for i, r := range model.requests("chat") {
			size := 0
			for _, m := range r.Messages {
				size += counter.Count(m.Content)
			}
			if size > small.Usable() {
				t.Errorf("request %d has %d tokens, the window holds %d", i, size, small.Usable())
			}
		}
	})
}
