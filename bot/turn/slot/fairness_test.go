package slot_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/gate"
	"ebb/sessions"
	"ebb/sessions/llm"
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
		model := &bottest.Script{Chat: slow(bottest.Text("all right")), Flush: slow(bottest.SaveCall("a fact")), Summary: slow(llm.Response{Text: bottest.GoodSummary, Finish: llm.FinishStop, Model: "fake"})}
		w := bottest.Start(t, bottest.Setup{Model: model, Config: func(c *bot.Config) {
			c.MaxConcurrent = 1
			c.Compaction = bottest.SmallOf("offload") // which compacts before the answer
		}})
		for i := range 30 {
			for _, conversation := range []string{"c1", "c2", "c3"} {
				m := bottest.Said(fmt.Sprint(conversation, "-", i), "alice", strings.Repeat("what comes next? ", 60))
				m.ConversationID = sessions.ConversationID(conversation)
				w.Post(m)
			}
			bottest.After(20 * time.Second)
		}
		bottest.Want(t, "replies", len(w.Wire.Sends()), 90)
		if len(model.Requests("summary")) == 0 {
			t.Error("nothing was compacted")
		}
	})
}

// Turns beyond the limit wait without a view of their session, and end at once when the bot stops. The next process
// answers their messages.
func TestRunningTurnsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		a := bottest.Start(t, bottest.Setup{Name: "a", Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}, Config: func(c *bot.Config) { c.MaxConcurrent = 2 }})
		for i := range 50 {
			m := bottest.Said(fmt.Sprint("m", i), "alice", "hello")
			m.ConversationID = sessions.ConversationID(fmt.Sprint("c", i))
			a.Post(m)
		}
		synctest.Wait()
		bottest.Want(t, "turns that began", a.Store.Called("begin"), 2*gate.TurnsPerCall)
		bottest.Want(t, "calls of the model", len(a.Model.Requests("chat")), 2)
		began := time.Now()
		a.Stop()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the stop took %s", took)
		}
		bottest.Want(t, "turns that began before the end", a.Store.Called("begin"), 2*gate.TurnsPerCall)
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: shelf, Config: func(c *bot.Config) { c.MaxConcurrent = 2 }})
		bottest.After(10 * time.Second)
		bottest.Want(t, "replies of the next", len(b.Wire.Sends()), 50)
	})
}

// A flood of messages in a group whose replies don't get out: they wait in the storage, not in memory, and are all answered when
// DingTalk takes replies again.
func TestFloodWaitsInTheStorage(t *testing.T) {
	t.Parallel()
	for alone, flood := range map[bool]int{false: 2000, true: 200} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Bool
			net := &bottest.Wire{Deliver: func(context.Context, sessions.Outgoing) (chat.Sent, error) {
				if !open.Load() {
					return chat.Sent{Via: "webhook"}, &chat.SendError{After: time.Second, Err: bottest.ErrAway}
				}
				return chat.Sent{Via: "webhook", Part: 1}, nil
			}}
			w := bottest.Start(t, bottest.Setup{Wire: net, Config: func(c *bot.Config) { c.AloneEach = alone }})
			for i := range flood {
				w.Post(bottest.Said(fmt.Sprint("m", i), "alice", "hello"))
			}
			bottest.After(time.Minute)
			if n := w.Gauge("ebb_outbox_waiting"); n > bottest.MaxQueued {
				t.Errorf("%d replies wait in memory", n)
			}
			if n, most := len(w.Model.Requests("chat")), bottest.MaxQueued+1; n > most {
				t.Errorf("%d answers were made without a reader, want at most %d", n, most)
			}
			open.Store(true)
			bottest.After(5 * time.Minute)
			for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
				if e.State == sessions.Pending {
					t.Fatalf("event %d was never answered", e.ID)
				}
			}
			bottest.Want(t, "replies in memory at the end", w.Gauge("ebb_outbox_waiting"), 0)
		})
	}
}

// Long messages that waited together are answered as far as they fit. No request is larger than the window, and a
// message left for a later turn does not count as broken.
func TestLongMessagesAreNotMergedBeyondTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) {
			<-time.After(time.Second)
			return bottest.Text("read"), nil
		}}
		w := bottest.Start(t, bottest.Setup{Model: model})
		for i := range 21 {
			w.Post(bottest.Said(fmt.Sprint("m", i), "alice", strings.Repeat("我们下周三上午在三号会议室开会。", 20<<10/48)))
		}
		bottest.After(5 * time.Minute)
		for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
			if e.Role == sessions.RoleUser && e.State != sessions.Done {
				t.Errorf("event %d is %s", e.ID, e.State)
			}
		}
		for i, r := range model.Requests("chat") {
			size := 0
			for _, m := range r.Messages {
				size += bottest.Counter.Count(m.Content)
			}
			if size > bottest.Small.Usable() {
				t.Errorf("request %d has %d tokens, the window holds %d", i, size, bottest.Small.Usable())
			}
		}
	})
}
