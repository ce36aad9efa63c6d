package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		w.store.mem.Spend(group, sessions.Usage{Prompt: 100})
		w.say("m2", "alice", "hello")
		want(t, "flushes", len(w.store.flushes(group).ranges), 1)
	})
}

// A conversation at rest is flushed once, and not again until somebody speaks.
func TestIdleIsFlushed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.say("m1", "alice", "the cluster is called heron")
		after(idleAfter - time.Minute)
		want(t, "flushes before it rests", len(w.store.flushes(group).ranges), 0)
		after(2 * time.Minute)
		after(3 * time.Hour)
		f := w.store.flushes(group)
		want(t, "flushes", fmt.Sprint(f.ranges, f.triggers), "[[0 2]] [idle]")
		w.say("m2", "alice", "good evening")
		want(t, "answers", len(w.wire.texts()), 2)
	})
}

// What is owed is settled in the background from the log, with growing rests, and the group hears nothing of it. Three
// failures in a row are told to the operators, once.
func TestDebtIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{flush: func(context.Context, Request) (Response, error) {
			return Response{}, &ModelError{Class: Busy, Err: errors.New("busy")}
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
		w.say("status", "alice", "/status")
		if text := w.wire.texts()[1]; !strings.Contains(text, "欠一次整理") {
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
		m := &script{flush: func(context.Context, Request) (Response, error) { return text("prose"), nil }}
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
