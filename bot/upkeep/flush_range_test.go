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
	"ebb/sessions"
	"ebb/sessions/llm"
)

// A flush reads neither commands nor their answers: a list of memories would become facts again.
func TestFlushReadsNoCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-alice"} }})
		w.Say("m1", "alice", "the canary is green")
		w.Say("m2", "alice", "/help")
		answer := w.Wire.Texts()[1]
		w.Say("m3", "alice", "the harbour is blue")
		w.Say("m4", "alice", "/new")
		var read strings.Builder
		for _, r := range w.Model.Requests("flush") {
			read.WriteString(bottest.LastWords(r))
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
		if f := w.Store.Flushes(bottest.Group); f.Owed != 0 || f.Seq < 6 {
			t.Errorf("flushed up to %d, owed up to %d", f.Seq, f.Owed)
		}
	})
}

// A message that the provider refuses is passed over and said, and what stands around it is read.
func TestRefusedMessageEndsNoFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var read strings.Builder
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-alice"} }, Model: &bottest.Script{Flush: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(bottest.LastWords(r), "the forbidden word") {
				return llm.Response{}, &llm.CallError{Class: llm.Refused, Err: errors.New("data_inspection_failed")}
			}
			read.WriteString(bottest.LastWords(r))
			return bottest.SaveCall("the canary is green"), nil
		}}})
		for i, words := range []string{"one", "two", "the forbidden word", "four", "five"} {
			w.Say(fmt.Sprint("m", i), "alice", "heard "+words)
		}
		w.Say("new", "alice", "/new")
		bottest.After(time.Minute)
		f := w.Store.Flushes(bottest.Group)
		if f.Owed != 0 || f.Seq < 10 || f.Failures != 0 {
			t.Errorf("flushed up to %d, owed up to %d, %d failures", f.Seq, f.Owed, f.Failures)
		}
		for _, words := range []string{"heard one", "heard two", "heard four", "heard five"} {
			if !strings.Contains(read.String(), words) {
				t.Errorf("%q was not read", words)
			}
		}
		lines := w.Log.Lines(t, "Event passed over by a memory flush: no model reads it, the rest goes on")
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
		"away":     {bottest.ErrAway, "storage", 1},
		"conflict": {sessions.ErrConflict, "session changed meanwhile", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Remember.EveryTurn = true }})
				w.Store.Fail(bottest.Times(1, "flush", c.err))
				w.Say("m1", "alice", "hello")
				f := w.Store.Flushes(bottest.Group)
				bottest.Want(t, "failures", f.Failures, c.failures)
				bottest.Want(t, "reason", f.Debt.Reason, c.reason)
			})
		})
	}
}

// A long flush ends where the day's tokens do, which is no failure of it; another day goes on from there.
func TestFlushEndsWithTheDaysTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) {
			r := bottest.SaveCall("the canary is green")
			r.Usage = sessions.Usage{Prompt: 900, Completion: 100}
			return r, nil
		}}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: func(c *bot.Config) { c.Compaction.Enabled, c.Compaction.DailyTokens = false, 1000 }})
		for i := range 12 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 1500))
		}
		bottest.After(3 * time.Hour)
		first := w.Store.Flushes(bottest.Group)
		bottest.Want(t, "calls", len(m.Requests("flush")), 1)
		bottest.Want(t, "owed", fmt.Sprint(first.Debt.Reason, first.Failures), "tokens of the day are used up0")
		if first.Seq == 0 || first.Seq >= first.Owed {
			t.Errorf("flushed up to %d, owed up to %d", first.Seq, first.Owed)
		}
		bottest.After(24 * time.Hour)
		if next := w.Store.Flushes(bottest.Group); next.Seq <= first.Seq || len(m.Requests("flush")) != 2 {
			t.Errorf("a day later flushed up to %d after %d, in %d calls", next.Seq, first.Seq, len(m.Requests("flush")))
		}
	})
}
