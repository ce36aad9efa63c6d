package upkeep_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// A policy that goes by turns summarizes them also in the mode that moves large results out first, however small the
// context is. Without a result to move, no useless attempt is logged over and over.
func TestOffloadingDoesNotStopARhythm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := compaction.Policies["turns"]
		p.Mode, p.OffloadOver, p.OffloadAt, p.OffloadEnough = compaction.OffloadThenCompact, 2000, 0.7, 15000
		m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text(bottest.GoodSummary), nil
		}}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.Compaction.Policy = p }})
		for i := range p.TailTurns + p.Segment {
			w.Post(bottest.Said(fmt.Sprint("m", i), "alice", bottest.Prose(i, 60)))
			synctest.Wait()
		}
		rows := bottest.Attempts(t, w.Store.Mem.Compactions)
		if len(rows) != 1 || rows[0].Outcome != sessions.CompactionCommitted || rows[0].EndSeq != 2*int64(p.Segment) {
			t.Errorf("compaction log: %+v", rows)
		}
	})
}

// Older summaries of more events than are read at once are rolled up from their own texts. A roll-up from a part of the
// events would lose the rest.
func TestLongRangeIsNotRolledUpInPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text(bottest.GoodSummary), nil
		}}
		p := compaction.Policies["archive"]
		p.RollUpSegments = 2
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) {
			c.Compaction = compaction.Settings{Enabled: true, Policy: p, Window: compaction.Window{
				Context: 128_000, Reserve: 20_000, Threshold: 80_000, Share: 0.5, FlushRatio: 0.9, Summary: 1200,
			}}
		}})
		w.Post(bottest.Said("first", "alice", "hello"))
		synctest.Wait()
		s := w.State(bottest.Group)
		long := sessions.TurnResult{Calibration: 1}
		for i := range bottest.MaxRollUp {
			long.Events = append(long.Events, sessions.Event{Role: sessions.RoleAssistant, Content: fmt.Sprint("ok ", i), Tokens: 3})
		}
		l, err := w.Store.Mem.Leases.Acquire(t.Context(), bottest.Group, w.Name)
		if err != nil {
			t.Fatal(err)
		}
		done, err := w.Store.Mem.Turns.Commit(t.Context(), l, long)
		if err != nil {
			t.Fatal(err)
		}
		half := s.LastSeq + bottest.MaxRollUp/2
		for _, r := range [][2]int64{{0, half}, {half, done.LastSeq}} {
			_, err := w.Store.Mem.Compactions.Compact(t.Context(), l, sessions.Compaction{
				From: r[0], Through: r[1], Log: sessions.LogEntry{Outcome: sessions.CompactionCommitted},
				Summaries: []sessions.NewSummary{{StartSeq: r[0] + 1, EndSeq: r[1], Text: bottest.GoodSummary, Tokens: 100}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := 0; len(m.Requests("summary")) < 2; i++ {
			if i > 50 {
				t.Fatal("nothing is rolled up")
			}
			w.Post(bottest.Said(fmt.Sprint("m", i), "alice", bottest.Prose(i, 60)))
			synctest.Wait()
		}
		if got := bottest.LastWords(m.Requests("summary")[1]); !strings.Contains(got, `"role":"summary"`) {
			t.Errorf("the roll-up reads %.300s", got)
		}
	})
}
