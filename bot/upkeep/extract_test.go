package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Enough messages that look worth remembering make an extraction due, after the answer; the cycle keeps its own flush.
func TestCandidatesMakeFlushDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Remember.Candidates = 3 }})
		for i := range 2 {
			w.Say(fmt.Sprint("m", i), "alice", fmt.Sprintf("记住：服务器 %d 由李娜负责", i))
		}
		w.Say("small talk", "bob", "ok")
		bottest.Want(t, "candidates", state2(w, bottest.Group).Candidates, 2)
		bottest.Want(t, "flushes of two candidates", len(w.Store.Flushes(bottest.Group).Ranges), 0)
		w.Say("m3", "alice", "记住：我们决定 5 月 2 日发布")
		f := w.Store.Flushes(bottest.Group)
		bottest.Want(t, "flushes of three", fmt.Sprint(f.Ranges, f.Triggers), "[[0 8]] [candidates]")
		bottest.Want(t, "mark of the cycle", f.Epoch, -1)
		bottest.Want(t, "candidates after it", state2(w, bottest.Group).Candidates, 0)
		bottest.Want(t, "answers", len(w.Wire.Texts()), 4)
		w.Talk(1)
		bottest.Want(t, "flushes up to the compaction", len(w.Store.Flushes(bottest.Group).Ranges), 2)
	})
}

// state2 is the session's row with the flush state.
func state2(w *bottest.World, key sessions.Key) sessions.Session {
	w.T.Helper()
	s, err := w.Store.Session(w.T.Context(), key)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

// S2: with extract every_turn each answered turn has its facts drawn out, however short the context.
func TestEveryTurnIsExtracted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Remember.EveryTurn = true }})
		for i := range 3 {
			w.Say(fmt.Sprint("m", i), "alice", "hello")
		}
		f := w.Store.Flushes(bottest.Group)
		bottest.Want(t, "flushes", fmt.Sprint(f.Ranges, f.Triggers), "[[0 2] [2 4] [4 6]] [every_turn every_turn every_turn]")
	})
}

// Neither runs where a day's allowance is used up.
func TestExtractionWithinTheDaysAllowance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Remember.EveryTurn, c.Compaction.DailyTokens = true, 100 }})
		w.Say("m1", "alice", "hello")
		if err := w.Store.Charge(t.Context(), bottest.Group, sessions.Spending{Kind: sessions.SpentFlush, Usage: sessions.Usage{Prompt: 100}}); err != nil {
			t.Fatal(err)
		}
		w.Say("m2", "alice", "hello")
		bottest.Want(t, "flushes", len(w.Store.Flushes(bottest.Group).Ranges), 1)
	})
}

// An idle conversation is flushed once, and again only after a new message. The trigger is a marked message, or enough
// messages without a marked one.
func TestIdleIsFlushed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"marked":              {[]string{"记住：集群叫 heron"}, "[[0 2]] [idle]"},
		"plain facts":         {[]string{"生产库在上海机房", "备份在杭州", "监控在北京", "日志在深圳", "跳板机在上海"}, "[[0 10]] [idle]"},
		"hardly a word":       {[]string{"ok", "ok", "ok", "ok"}, "[] []"},
		"a word and a marked": {[]string{"ok", "记住：集群叫 heron"}, "[[0 4]] [idle]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{})
				for i, words := range c.words {
					w.Say(fmt.Sprint("m", i), "alice", words)
				}
				bottest.After(bottest.IdleAfter - time.Minute)
				bottest.Want(t, "flushes before it rests", len(w.Store.Flushes(bottest.Group).Ranges), 0)
				bottest.After(2 * time.Minute)
				bottest.After(3 * time.Hour)
				f := w.Store.Flushes(bottest.Group)
				bottest.Want(t, "flushes", fmt.Sprint(f.Ranges, f.Triggers), c.want)
				w.Say("later", "alice", "good evening")
				bottest.Want(t, "answers", len(w.Wire.Texts()), len(c.words)+1)
			})
		})
	}
}

// room posts a message in a conversation of its own, and returns its session.
func room(w *bottest.World, name, words string) sessions.Key {
	w.T.Helper()
	m := bottest.Said("m-"+name, "alice", words)
	m.ConversationID = sessions.ConversationID(name)
	w.Post(m)
	synctest.Wait()
	return sessions.NewKey("robot", m.ConversationID, "")
}

// However many sessions are passed over, the one behind them is flushed at the same look, and of the others not even the
// lease is taken.
func TestPassedOverSessionsDelayNoFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, quiet := bottest.NewShelf(), bottest.SmallSettings
		quiet.Policy.Flush = false
		groups := func(c *bot.Config) {
			c.Compactions = map[sessions.ConversationID]compaction.Settings{}
			for i := range bottest.OnePage + 5 {
				c.Compactions[sessions.ConversationID(fmt.Sprint("off", i))] = quiet
			}
		}
		a := bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "a", Config: groups})
		for i := range bottest.OnePage + 5 {
			room(a, fmt.Sprint("off", i), "记住：集群叫 heron")
		}
		bottest.After(time.Minute)
		last := room(a, "on", "记住：集群叫 heron")
		a.Kill()
		a.Stop()
		b := bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "b", Config: groups})
		bottest.After(bottest.IdleAfter + time.Minute)
		bottest.Want(t, "flushed", shelf.Flushes(last).Triggers, []string{"idle"})
		bottest.Want(t, "leases taken", b.Store.Called("acquire"), 1)
	})
}

// A debt that can't be settled takes no more than its part of the day: a compaction has the rest.
func TestDebtLeavesTokensForCompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		prose := func(context.Context, llm.Request) (llm.Response, error) {
			r := bottest.Text("prose")
			r.Usage = sessions.Usage{Prompt: 90, Completion: 10}
			return r, nil
		}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: &bottest.Script{Flush: prose}, Config: func(c *bot.Config) { c.Remember.EveryTurn, c.Compaction.DailyTokens = true, 4000 }})
		w.Say("m1", "alice", "the cluster is called heron")
		bottest.After(20 * time.Hour) // one day in UTC
		if n := w.State(bottest.Group).SpentToday; n < 1000 || n > 1300 {
			t.Fatalf("%d tokens spent on a debt, want about a quarter of 4000", n)
		}
		w.Talk(1)
		bottest.Want(t, "compactions", w.Compactions(), 1)
	})
}

// A provider that lets every call run out of time ends a look, instead of each session's wait adding up; and what needs no
// model goes on meanwhile.
func TestTimeoutsEndACheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &attic{}
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Flush: bottest.Hang}, Config: func(c *bot.Config) { bottest.Tidies(c, a) }})
		for i := range bottest.MaxTimeouts + 2 { // between two checks, so that one check finds them all idle
			bottest.After(time.Second)
			room(w, fmt.Sprint("room", i), "记住：集群叫 heron")
		}
		bottest.After(bottest.IdleAfter)
		bottest.After(time.Minute) // the first is under way
		a.mu.Lock()
		a.backlog = 700
		a.mu.Unlock()
		bottest.After(bottest.BackgroundInterval)
		a.mu.Lock()
		bottest.Want(t, "without an index while a flush hangs", a.backlog, 0)
		a.mu.Unlock()
		bottest.After(bottest.MaxTimeouts * bottest.CompactDeadline)
		var order []string
		for _, line := range w.Log.Lines(t, "Executing memory flush") {
			order = append(order, fmt.Sprint(line["trigger"]))
		}
		bottest.Want(t, "flushes tried", strings.Join(order, " "), "idle idle idle debt")
	})
}

// An owed range is settled in the background from the log, with growing pauses and without a message in the group.
// Three failures in a row are reported to the operators, once.
func TestDebtIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
		}}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.Remember.EveryTurn = true }})
		w.Say("m1", "alice", "the cluster is called heron")
		bottest.Want(t, "owed up to", w.Store.Flushes(bottest.Group).Owed, int64(2))
		bottest.After(20 * time.Minute)
		tries := len(m.Requests("flush"))
		// 1, 2, 4, 8 minutes after the first failure; each asks the model once, and once more in case it answers in prose.
		if tries < 4 || tries > 12 {
			t.Errorf("%d requests in 20 minutes", tries)
		}
		bottest.Want(t, "notices", len(w.Log.Lines(t, "Memory flush failed three times in a row: nothing is lost, the range is owed and tried again in the background")), 1)
		w.Say("status", "alice", "/状态")
		if text := w.Wire.Texts()[1]; !strings.Contains(text, "最近的内容还没能记入记忆") {
			t.Errorf("status: %s", text)
		}
		m.Mu.Lock()
		m.Flush = nil
		m.Mu.Unlock()
		bottest.After(time.Hour + time.Minute)
		f := w.Store.Flushes(bottest.Group)
		if f.Owed != 0 || len(f.Ranges) == 0 || f.Ranges[0][0] != 0 {
			t.Errorf("after the recovery: owed up to %d, flushed %v", f.Owed, f.Ranges)
		}
		bottest.Want(t, "trigger", f.Triggers[0], "debt")
		bottest.Want(t, "messages to the group", len(w.Wire.Texts()), 2)
	})
}

// A debt is not settled from under a living owner.
func TestDebtOfAnotherReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text("prose"), nil }}
		shelf := bottest.NewShelf()
		a := bottest.Start(t, bottest.Setup{Shelf: shelf, Model: m, Name: "a", Config: func(c *bot.Config) { c.Remember.EveryTurn = true }})
		a.Say("m1", "alice", "the cluster is called heron")
		term := a.State(bottest.Group).Lease.Term
		b := bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "b"})
		bottest.After(10 * time.Minute)
		bottest.Want(t, "flushes by another", len(b.Model.Requests("flush")), 0)
		bottest.Want(t, "owner", a.State(bottest.Group).Lease, sessions.Lease{Key: bottest.Group, Owner: "a", Term: term})
		a.Kill()
		a.Stop()
		bottest.After(2 * time.Hour)
		bottest.Want(t, "owed", shelf.Flushes(bottest.Group).Owed, int64(0))
	})
}
