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
	"ebb/sessions"
)

// A flush reads neither commands nor their answers: a list of memories would become facts again.
func TestFlushReadsNoCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Admins = []sessions.UserID{"u-alice"} }})
		w.say("m1", "alice", "the canary is green")
		w.say("m2", "alice", "/help")
		answer := w.wire.texts()[1]
		w.say("m3", "alice", "the harbour is blue")
		w.say("m4", "alice", "/new")
		var read strings.Builder
		for _, r := range w.model.requests("flush") {
			read.WriteString(lastWords(r))
		}
		for _, words := range []string{"the canary is green", "the harbour is blue"} {
			if !strings.Contains(read.String(), words) {
				t.Errorf("%q was not read", words)
			}
		}
		for _, words := range []string{`/help`, `/new`, strings.Fields(answer)[0]} {
			if strings.Contains(read.String(), words) {
				t.Errorf("%q was read in %s", words, read.String())
			}
		}
		if f := w.store.flushes(group); f.owed != 0 || f.seq < 6 {
			t.Errorf("flushed up to %d, owed up to %d", f.seq, f.owed)
		}
	})
}

// A message that the provider refuses is passed over and said, and what stands around it is read.
func TestRefusedMessageEndsNoFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var read strings.Builder
		w := start(t, setup{config: func(c *Config) { c.Admins = []sessions.UserID{"u-alice"} }, model: &script{flush: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(lastWords(r), "the forbidden word") {
				return llm.Response{}, &llm.CallError{Class: llm.Refused, Err: errors.New("data_inspection_failed")}
			}
			read.WriteString(lastWords(r))
			return saveCall("the canary is green"), nil
		}}})
		for i, words := range []string{"one", "two", "the forbidden word", "four", "five"} {
			w.say(fmt.Sprint("m", i), "alice", "heard "+words)
		}
		w.say("new", "alice", "/new")
		after(time.Minute)
		f := w.store.flushes(group)
		if f.owed != 0 || f.seq < 10 || f.failures != 0 {
			t.Errorf("flushed up to %d, owed up to %d, %d failures", f.seq, f.owed, f.failures)
		}
		for _, words := range []string{"heard one", "heard two", "heard four", "heard five"} {
			if !strings.Contains(read.String(), words) {
				t.Errorf("%q was not read", words)
			}
		}
		lines := w.log.lines(t, "Event passed over by a memory flush: no model reads it, the rest goes on")
		if len(lines) == 0 || fmt.Sprint(lines[0]["event"]) != "5" {
			t.Errorf("logged %v", lines)
		}
	})
}

// The reason of a failed flush is the failed operation. A cursor that another process moved is no failure.
func TestFailedFlushReportsTheOperation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err      error
		reason   string
		failures int
	}{
		"away":     {errAway, "storage", 1},
		"conflict": {sessions.ErrConflict, "session changed meanwhile", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{config: func(c *Config) { c.Remember.EveryTurn = true }})
				w.store.fail(times(1, "flush", c.err))
				w.say("m1", "alice", "hello")
				f := w.store.flushes(group)
				want(t, "failures", f.failures, c.failures)
				want(t, "reason", f.debt.Reason, c.reason)
			})
		})
	}
}

// A long flush ends where the day's tokens do, which is no failure of it; another day goes on from there.
func TestFlushEndsWithTheDaysTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{flush: func(context.Context, llm.Request) (llm.Response, error) {
			r := saveCall("the canary is green")
			r.Usage = sessions.Usage{Prompt: 900, Completion: 100}
			return r, nil
		}}
		w := start(t, setup{model: m, config: func(c *Config) { c.Compaction.Enabled, c.Compaction.DailyTokens = false, 1000 }})
		for i := range 12 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 1500))
		}
		after(3 * time.Hour)
		first := w.store.flushes(group)
		want(t, "calls", len(m.requests("flush")), 1)
		want(t, "owed", fmt.Sprint(first.debt.Reason, first.failures), "tokens of the day are used up0")
		if first.seq == 0 || first.seq >= first.owed {
			t.Errorf("flushed up to %d, owed up to %d", first.seq, first.owed)
		}
		after(24 * time.Hour)
		if next := w.store.flushes(group); next.seq <= first.seq || len(m.requests("flush")) != 2 {
			t.Errorf("a day later flushed up to %d after %d, in %d calls", next.seq, first.seq, len(m.requests("flush")))
		}
	})
}
