package bot_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql/sqltest"
)

// defaults are the settings that a configuration without any has.
var defaults = compaction.Settings{
	Enabled: true, Policy: compaction.Policies["token_budget"],
	Window: compaction.Window{Context: 128000, Reserve: 20000, Threshold: 80000, Share: 0.5, FlushRatio: 0.9, Summary: 1200},
}

// imported is a conversation with a number of messages, each of a number of tokens, without a summary.
func imported(t *testing.T, settings compaction.Settings, messages, size int) *place {
	t.Helper()
	p := &place{t: t, url: sqltest.URL(t), facts: &atomic.Int64{}, talk: dialogue{settings: settings, words: func(int) string { return "and now?" }}}
	s := p.reader()
	if _, err := s.Leases.Beat(t.Context(), "import"); err != nil {
		t.Fatal(err)
	}
	a, err := s.Inbox.Accept(t.Context(), "import", bottest.Group, bottest.Said("first", "alice", "it begins"))
	if err != nil {
		t.Fatal(err)
	}
	turn := sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{size}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "so be it", Tokens: size}},
	}
	if _, err := s.Turns.Commit(t.Context(), a.Lease, turn); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Leases.Resign(t.Context(), "import"); err != nil {
		t.Fatal(err)
	}
	p.exec(`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id, tokens)
		SELECT $1, n, CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, 'about the ' || n || 'th release of the gateway',
			CASE n % 2 WHEN 1 THEN 'u-alice' ELSE '' END, CASE n % 2 WHEN 1 THEN 'alice' ELSE '' END,
			CASE n % 2 WHEN 1 THEN 'i' || n END, $3::int
		FROM generate_series(3, $2::int) AS n`, string(bottest.Group), messages, size)
	p.exec(`UPDATE dingtalk_sessions SET last_seq = $2::int, total_tokens = $2::int * ($3::int + $4::int) WHERE session_key = $1`,
		string(bottest.Group), messages, size, tokens.MessageOverhead)
	return p
}

// work has the background work a backlog off until the upkeep has nothing to do.
func (r *replica) work() sessions.Session {
	r.t.Helper()
	r.bot.Worker().WakeBacklogs(r.t.Context())
	ctx, stop := context.WithTimeout(r.t.Context(), 20*patience)
	defer stop()
	if err := r.bot.AwaitIdle(ctx); err != nil {
		r.t.Fatal(err)
	}
	return r.place.look()
}

// priced counts the calls of a model and bills each with a number of tokens.
func priced(calls *atomic.Int64, tokens int, answer func() llm.Response) func(context.Context, llm.Request) (llm.Response, error) {
	return func(context.Context, llm.Request) (llm.Response, error) {
		calls.Add(1)
		a := answer()
		a.Usage = sessions.Usage{Prompt: tokens}
		return a, nil
	}
}

// P92: an imported conversation of 18,000 messages and 1.4 million tokens ends under its threshold. Its parts all
// commit in the background, without a message of a member, day by day within the day's tokens. The group gets a notice.
func TestImportIsWorkedOff(t *testing.T) {
	t.Parallel()
	settings := defaults
	settings.DailyTokens = 1_000_000
	p := imported(t, settings, 18_000, 74)
	before := p.look().TotalTokens
	var summaries, flushes atomic.Int64
	r := p.run("a", func(r *replica, c *bot.Config) {
		c.Language = "en"
		r.model.Summary = priced(&summaries, 70_000, func() llm.Response { return bottest.Text(bottest.GoodSummary) })
		r.model.Flush = priced(&flushes, 70_000, func() llm.Response {
			return bottest.SaveCall(fmt.Sprintf("Fact number %d.", p.facts.Add(1)))
		})
	})
	days := 0
	for s := p.look(); s.TotalTokens >= settings.Window.Trigger(); days++ {
		if days == 8 {
			t.Fatalf("after %d days the context has %d tokens", days, s.TotalTokens)
		}
		p.exec("UPDATE dingtalk_sessions SET spent_on = spent_on - 1")
		left := s.TotalTokens
		if s = r.work(); s.TotalTokens >= left {
			t.Fatalf("on day %d the backlog stays at %d tokens: %s", days, left, s.CompactError)
		}
		if s.SpentToday > settings.DailyTokens+140_000 { // an attempt that began within the day's tokens ends
			t.Errorf("on day %d upkeep took %d tokens", days, s.SpentToday)
		}
		if s.TotalTokens < settings.Window.Trigger() {
			continue
		}
		n := len(r.wire.Texts())
		r.post(bottest.Said(fmt.Sprint("status", days), "root", "/status"))
		r.settle()
		answer := strings.Join(r.wire.Texts()[n:], "")
		for _, words := range []string{"backlog: ", "; today's spend 1,", "/ 1,000,000; today's spend is used up, compaction goes on after midnight UTC"} {
			if !strings.Contains(answer, words) {
				t.Errorf("/status on day %d lacks %q:\n%s", days, words, answer)
			}
		}
	}
	rows := bottest.Attempts(t, p.reader().Compactions)
	for _, e := range rows {
		if e.Outcome != sessions.CompactionCommitted {
			t.Errorf("attempt %d is %s: %s", e.ID, e.Outcome, e.Error)
		}
	}
	// A flush reads 500 messages with one call.
	if most := before/(settings.Window.Context/2) + 2; len(rows) > most || int(flushes.Load()) > 2*most {
		t.Errorf("%d attempts and %d flushes for %d tokens, want at most %d", len(rows), flushes.Load(), before, most)
	}
	s := p.look()
	t.Logf("%d tokens: %d attempts, %d summaries and %d flushes of 70000 tokens each, %d days, %d tokens at the end",
		before, len(rows), summaries.Load(), flushes.Load(), days, s.TotalTokens)
}

// A model with a smaller window than the conversation was held in.
func TestSmallerWindowIsWorkedOff(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]compaction.Window{
		"24k":  {Context: 24000, Reserve: 4000, Threshold: 12000, Share: 0.5, FlushRatio: 0.9, Summary: 1200},
		"8192": {Context: 8192, Reserve: 1500, Threshold: 5000, Share: 0.5, FlushRatio: 0.9, Summary: 1200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := defaults
			settings.Window = w
			p := imported(t, settings, 800, 69)
			r := p.run("a", nil)
			s := r.work()
			rows := bottest.Attempts(t, p.reader().Compactions)
			for _, e := range rows {
				if e.Outcome != sessions.CompactionCommitted {
					t.Errorf("attempt %d is %s: %s", e.ID, e.Outcome, e.Error)
				}
			}
			if s.TotalTokens >= w.Trigger() {
				t.Errorf("%d tokens after %d attempts, the threshold is %d", s.TotalTokens, len(rows), w.Trigger())
			}
			t.Logf("58,000 tokens: %d attempts, %d tokens at the end", len(rows), s.TotalTokens)
		})
	}
}

// The backlog that undos and erasures reopen is worked off likewise. /compact by hand summarizes a part and reports the
// rest. It never says that there is nothing to do while the context is over its threshold.
func TestReopenedRangeIsWorkedOff(t *testing.T) {
	t.Parallel()
	settings := defaults
	settings.Window = compaction.Window{Context: 24000, Reserve: 4000, Threshold: 12000, Share: 0.5, FlushRatio: 0.9, Summary: 1200}
	p := imported(t, settings, 1600, 69)
	var refuse atomic.Bool
	r := p.run("a", func(r *replica, c *bot.Config) {
		r.model.Summary = func(context.Context, llm.Request) (llm.Response, error) {
			if refuse.Load() {
				return bottest.Text("I'm sorry, I cannot help with that."), nil
			}
			return bottest.Text(bottest.GoodSummary), nil
		}
	})
	r.work()
	answer := func(id, words string) string {
		t.Helper()
		n := len(r.wire.Texts())
		r.post(bottest.Said(id, "root", words))
		r.settle()
		return strings.Join(r.wire.Texts()[n:], "\n")
	}
	refuse.Store(true) // or the background would be faster than the undos
	for i := 0; p.look().CompactedSeq > 0; i++ {
		if got := answer(fmt.Sprint("undo", i), "/压缩撤销"); !strings.HasPrefix(got, "↩️") {
			t.Fatalf("undo %d: %q", i, got)
		}
	}
	if got := answer("refused", "/压缩"); !strings.HasPrefix(got, "❌") {
		t.Errorf("with a model that refuses: %q", got)
	}
	refuse.Store(false)
	p.exec("UPDATE dingtalk_sessions SET compact_retry_at = NULL, compact_failures = 0")
	if got := answer("compact", "/压缩"); !strings.HasPrefix(got, "✅") || !strings.Contains(got, "积压还剩") || !strings.Contains(got, "后台继续压缩") {
		t.Errorf("of a backlog /compact says %q", got)
	}
	if s := r.work(); s.TotalTokens >= settings.Window.Trigger() {
		t.Errorf("%d tokens are left: %s", s.TotalTokens, s.CompactError)
	}
}

// A model that never gives a usable summary does not use up the day: attempts rest longer and ask for less.
func TestFailingBacklogRests(t *testing.T) {
	t.Parallel()
	settings := defaults
	settings.DailyTokens = 2_000_000
	p := imported(t, settings, 4000, 70)
	r := p.run("a", func(r *replica, c *bot.Config) {
		r.model.Summary = func(_ context.Context, q llm.Request) (llm.Response, error) {
			a := bottest.Text("")
			a.Usage = sessions.Usage{Prompt: 3 * bottest.RequestTokens(r.bot.Views(), q.Messages)} // bodies are shorter than their counts say
			return a, nil
		}
		c.SummaryRetries = 1
	})
	for range 20 {
		p.exec("UPDATE dingtalk_sessions SET compact_retry_at = now()")
		r.work()
	}
	s := p.look()
	if s.CompactFailures < 20 || s.SpentToday > settings.DailyTokens/2 {
		t.Errorf("after %d failures %d tokens are spent", s.CompactFailures, s.SpentToday)
	}
	if rest := time.Until(s.CompactRetryAt); rest < 15*time.Minute {
		t.Errorf("the next attempt comes after %v", rest)
	}
}
