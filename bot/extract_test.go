package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/compaction"
	"ebb/sessions"
)

// Enough messages that look worth remembering make an extraction due, after the answer; the cycle keeps its own flush.
func TestCandidatesMakeFlushDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Remember.Candidates = 3 }})
		for i := range 2 {
			w.say(fmt.Sprint("m", i), "alice", fmt.Sprintf("记住：服务器 %d 由李娜负责", i))
		}
		w.say("small talk", "bob", "ok")
		want(t, "candidates", w.state2(group).Candidates, 2)
		want(t, "flushes of two candidates", len(w.store.flushes(group).ranges), 0)
		w.say("m3", "alice", "记住：我们决定 5 月 2 日发布")
		f := w.store.flushes(group)
		want(t, "flushes of three", fmt.Sprint(f.ranges, f.triggers), "[[0 8]] [candidates]")
		want(t, "mark of the cycle", f.epoch, -1)
		want(t, "candidates after it", w.state2(group).Candidates, 0)
		want(t, "answers", len(w.wire.texts()), 4)
		w.talk(1)
		want(t, "flushes up to the compaction", len(w.store.flushes(group).ranges), 2)
	})
}

// state2 is the session's row with the flush state.
func (w *world) state2(key sessions.Key) sessions.Session {
	w.t.Helper()
	s, err := w.store.Session(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// S2: with extract every_turn each answered turn has its facts drawn out, however short the context.
func TestEveryTurnIsExtracted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Remember.EveryTurn = true }})
		for i := range 3 {
			w.say(fmt.Sprint("m", i), "alice", "hello")
		}
		f := w.store.flushes(group)
		want(t, "flushes", fmt.Sprint(f.ranges, f.triggers), "[[0 2] [2 4] [4 6]] [every_turn every_turn every_turn]")
	})
}

// Neither runs where a day's allowance is used up.
func TestExtractionWithinTheDaysAllowance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Remember.EveryTurn, c.Compaction.DailyTokens = true, 100 }})
		w.say("m1", "alice", "hello")
		if err := w.store.Charge(t.Context(), group, sessions.Spending{Kind: sessions.SpentFlush, Usage: sessions.Usage{Prompt: 100}}); err != nil {
			t.Fatal(err)
		}
		w.say("m2", "alice", "hello")
		want(t, "flushes", len(w.store.flushes(group).ranges), 1)
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
				w := start(t, setup{})
				for i, words := range c.words {
					w.say(fmt.Sprint("m", i), "alice", words)
				}
				after(idleAfter - time.Minute)
				want(t, "flushes before it rests", len(w.store.flushes(group).ranges), 0)
				after(2 * time.Minute)
				after(3 * time.Hour)
				f := w.store.flushes(group)
				want(t, "flushes", fmt.Sprint(f.ranges, f.triggers), c.want)
				w.say("later", "alice", "good evening")
				want(t, "answers", len(w.wire.texts()), len(c.words)+1)
			})
		})
	}
}

// room posts a message in a conversation of its own, and returns its session.
func (w *world) room(name, words string) sessions.Key {
	w.t.Helper()
	m := said("m-"+name, "alice", words)
	m.ConversationID = sessions.ConversationID(name)
	w.post(m)
	synctest.Wait()
	return sessions.NewKey("robot", m.ConversationID, "")
}

// However many sessions are passed over, the one behind them is flushed at the same look, and of the others not even the
// lease is taken.
func TestPassedOverSessionsDelayNoFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, quiet := newShelf(), smallSettings
		quiet.Policy.Flush = false
		groups := func(c *Config) {
			c.Compactions = map[sessions.ConversationID]compaction.Settings{}
			for i := range onePage + 5 {
				c.Compactions[sessions.ConversationID(fmt.Sprint("off", i))] = quiet
			}
		}
		a := start(t, setup{shelf: shelf, name: "a", config: groups})
		for i := range onePage + 5 {
			a.room(fmt.Sprint("off", i), "记住：集群叫 heron")
		}
		after(time.Minute)
		last := a.room("on", "记住：集群叫 heron")
		a.kill()
		a.stop()
		b := start(t, setup{shelf: shelf, name: "b", config: groups})
		after(idleAfter + time.Minute)
		want(t, "flushed", shelf.flushes(last).triggers, []string{"idle"})
		want(t, "leases taken", b.store.called("acquire"), 1)
	})
}

// A debt that can't be settled takes no more than its part of the day: a compaction has the rest.
func TestDebtLeavesTokensForCompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		prose := func(context.Context, llm.Request) (llm.Response, error) {
			r := text("prose")
			r.Usage = sessions.Usage{Prompt: 90, Completion: 10}
			return r, nil
		}
		w := start(t, setup{model: &script{flush: prose}, config: func(c *Config) { c.Remember.EveryTurn, c.Compaction.DailyTokens = true, 4000 }})
		w.say("m1", "alice", "the cluster is called heron")
		after(20 * time.Hour) // one day in UTC
		if n := w.state(group).SpentToday; n < 1000 || n > 1300 {
			t.Fatalf("%d tokens spent on a debt, want about a quarter of 4000", n)
		}
		w.talk(1)
		want(t, "compactions", w.compactions(), 1)
	})
}

// A provider that lets every call run out of time ends a look, instead of each session's wait adding up; and what needs no
// model goes on meanwhile.
func TestTimeoutsEndACheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &attic{}
		w := start(t, setup{model: &script{flush: hang}, config: func(c *Config) { c.Keeper = a }})
		for i := range maxTimeouts + 2 { // between two checks, so that one check finds them all idle
			after(time.Second)
			w.room(fmt.Sprint("room", i), "记住：集群叫 heron")
		}
		after(idleAfter)
		after(time.Minute) // the first is under way
		a.mu.Lock()
		a.backlog = 700
		a.mu.Unlock()
		after(backgroundInterval)
		a.mu.Lock()
		want(t, "without an index while a flush hangs", a.backlog, 0)
		a.mu.Unlock()
		after(maxTimeouts * w.bot.cfg.CompactDeadline)
		var order []string
		for _, line := range w.log.lines(t, "Executing memory flush") {
			order = append(order, fmt.Sprint(line["trigger"]))
		}
		want(t, "flushes tried", strings.Join(order, " "), "idle idle idle debt")
	})
}

// An owed range is settled in the background from the log, with growing pauses and without a message in the group.
// Three failures in a row are reported to the operators, once.
func TestDebtIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{flush: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
		}}
		w := start(t, setup{model: m, config: func(c *Config) { c.Remember.EveryTurn = true }})
		w.say("m1", "alice", "the cluster is called heron")
		want(t, "owed up to", w.store.flushes(group).owed, int64(2))
		after(20 * time.Minute)
		tries := len(m.requests("flush"))
		// 1, 2, 4, 8 minutes after the first failure; each asks the model once, and once more in case it answers in prose.
		if tries < 4 || tries > 12 {
			t.Errorf("%d requests in 20 minutes", tries)
		}
		want(t, "notices", len(w.log.lines(t, "Memory flush failed three times in a row: nothing is lost, the range is owed and tried again in the background")), 1)
		w.say("status", "alice", "/状态")
		if text := w.wire.texts()[1]; !strings.Contains(text, "最近的内容还没能记入记忆") {
			t.Errorf("status: %s", text)
		}
		m.mu.Lock()
		m.flush = nil
		m.mu.Unlock()
		after(time.Hour + time.Minute)
		f := w.store.flushes(group)
		if f.owed != 0 || len(f.ranges) == 0 || f.ranges[0][0] != 0 {
			t.Errorf("after the recovery: owed up to %d, flushed %v", f.owed, f.ranges)
		}
		want(t, "trigger", f.triggers[0], "debt")
		want(t, "messages to the group", len(w.wire.texts()), 2)
	})
}

// A debt is not settled from under a living owner.
func TestDebtOfAnotherReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{flush: func(context.Context, llm.Request) (llm.Response, error) { return text("prose"), nil }}
		shelf := newShelf()
		a := start(t, setup{shelf: shelf, model: m, name: "a", config: func(c *Config) { c.Remember.EveryTurn = true }})
		a.say("m1", "alice", "the cluster is called heron")
		term := a.state(group).Lease.Term
		b := start(t, setup{shelf: shelf, name: "b"})
		after(10 * time.Minute)
		want(t, "flushes by another", len(b.model.requests("flush")), 0)
		want(t, "owner", a.state(group).Lease, sessions.Lease{Key: group, Owner: "a", Term: term})
		a.kill()
		a.stop()
		after(2 * time.Hour)
		want(t, "owed", shelf.flushes(group).owed, int64(0))
	})
}
