package bot_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/tools"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql/sqltest"
)

// newPlace is an empty database.
func newPlace(t *testing.T) *place {
	t.Helper()
	return &place{t: t, url: sqltest.URL(t), talk: dialogue{settings: bottest.SmallSettings}, facts: &atomic.Int64{}}
}

// One of many conversations kills the process each time it is answered: it alone is set aside, after few deaths, and all
// others are answered.
func TestOnlyKillingMessagesAreSetAside(t *testing.T) {
	t.Parallel()
	const others = 12
	p := newPlace(t)
	deaths := 0
	for left := 1; left > 0; {
		var r *replica
		var asked atomic.Int32
		first := deaths == 0
		all := make(chan struct{})
		name := sessions.ReplicaID(fmt.Sprint("r", deaths))
		r = p.run(name, func(r *replica, c *bot.Config) {
			r.model.Chat = func(ctx context.Context, q llm.Request) (llm.Response, error) {
				if asked.Add(1) == others+1 {
					close(all)
				}
				if strings.Contains(bottest.LastWords(q), "boom") {
					if first {
						<-all
					}
					r.die()
					return llm.Response{}, errDead
				}
				if first {
					select {
					case <-r.dead:
						return llm.Response{}, errDead
					case <-ctx.Done():
						return llm.Response{}, context.Cause(ctx)
					}
				}
				return bottest.Text("noted"), nil
			}
		})
		if first {
			r.post(bottest.Elsewhere(0, "boom"))
			for i := range others {
				r.post(bottest.Elsewhere(i+1, "hello"))
			}
		}
		await(t, "all is answered, or the process is dead", func() bool {
			left = one[int](t, p.db(), openWork)
			return left == 0 || r.isDead()
		})
		if r.isDead() {
			deaths++
		}
		r.stop()
		p.forget(name)
	}
	if most := 2 + bits.Len(others); deaths < bottest.MaxBroken || deaths > most { // two deaths, then one for each half
		t.Errorf("%d deaths, want %d to %d", deaths, bottest.MaxBroken, most)
	}
	bottest.Want(t, "dead letters", one[string](t, p.db(), "SELECT string_agg(content, ',') FROM dingtalk_session_events WHERE state = 'dead'"), "boom")
	bottest.Want(t, "answered", one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE role = 'user' AND state = 'done'"), others)
	if n := one[int](t, p.db(), "SELECT max(attempts) FROM dingtalk_session_events WHERE state = 'done'"); n >= bottest.MaxBroken {
		t.Errorf("another has %d attempts, want less than %d", n, bottest.MaxBroken)
	}
}

// saveFacts stores memories of the group about eve in her own words, and returns their ids.
func (p *place) saveFacts(n int) (ids []int64) {
	p.t.Helper()
	for i := range n {
		ids = append(ids, one[int64](p.t, p.db(), `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, subject_id, said_by, source_session)
			VALUES ('group', $1, 'profile', $2, decode(md5($2), 'hex'), 'u-eve', 'u-eve', $1) RETURNING id`,
			string(bottest.Group), fmt.Sprintf("Eve keeps the key of cabinet %d.", i)))
	}
	return ids
}

// Erasures come faster than a turn takes: 50, each 100 ms after the one before, beside turns that take as long as ten of them.
// The message is answered before they end, with a handful of calls, and no request after a receipt has what that one was for.
func TestErasuresStarveNoTurn(t *testing.T) {
	t.Parallel()
	const facts, long = 50, 10
	p := newPlace(t)
	var calls, gone atomic.Int32 // gone: the erasures that were acknowledged
	erased := make(chan struct{}, facts)
	r := p.run("a", func(r *replica, c *bot.Config) {
		c.Rights, c.Erasures = r.store.Rights, r.store.Erasure
		r.model.Chat = func(ctx context.Context, q llm.Request) (llm.Response, error) {
			n := calls.Add(1)
			for i := range gone.Load() {
				if w := fmt.Sprintf("cabinet %d.", i); strings.Contains(fmt.Sprint(q), w) {
					r.t.Errorf("call %d has %s, which was erased", n, w)
				}
			}
			for len(erased) > 0 {
				<-erased
			}
			for range long {
				select {
				case <-erased:
				case <-time.After(1500 * time.Millisecond): // the next one waits for this turn
				case <-ctx.Done():
					return llm.Response{}, context.Cause(ctx)
				}
			}
			return bottest.Text("noted"), nil
		}
	})
	ids := p.saveFacts(facts)
	r.post(bottest.Said("m0", "bob", "How are you?"))
	await(t, "the model is asked", func() bool { return calls.Load() > 0 })
	open := "SELECT count(*) FROM dingtalk_session_events WHERE state = 'pending'"
	answered := -1
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for i, id := range ids {
		<-pace.C
		if _, err := p.reader().Erasure.ForgetMemory(t.Context(), id, memory.Asking{}); err != nil {
			t.Fatal(err)
		}
		gone.Add(1)
		erased <- struct{}{}
		if answered < 0 && one[int](t, p.db(), open) == 0 {
			answered = i
		}
	}
	if answered < 0 {
		t.Errorf("no answer came before the last of %d erasures", facts)
	}
	if n := calls.Load(); n > sessions.MaxCuts+1 {
		t.Errorf("the model was called %d times, want %d at most", n, sessions.MaxCuts+1)
	}
	r.settle()
	t.Logf("answered beside erasure %d, after %d calls", answered, calls.Load())
}

// A fact is deleted while a turn goes on that read it, as by an erasure that saw no lease. Its answer is made again, without it.
func TestForgottenFactsAreNotRepeated(t *testing.T) {
	t.Parallel()
	const fact = "cabinet 0."
	for name, read := range map[string]sessions.ToolCall{
		"recalled": {},
		"found":    {ID: "c1", Name: "memory_search", Arguments: `{"query":"key of cabinet"}`},
		"listed":   {ID: "c1", Name: sessions.GetTool, Arguments: `{"path":"MEMORY.md"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			question := "Who keeps the key of the cabinet?"
			if read.Name != "" {
				question = "And?" // recalls nothing
			}
			deleted := false
			r := p.run("a", func(r *replica, c *bot.Config) {
				c.Remember = view.Remember{Recall: view.RecallAlways, RecallTokens: 800, RecallTime: patience}
				c.Tools = append(c.Tools, tools.All(tools.Parts{Facts: r.store.Facts, Search: r.store.Search, Digests: r.store.Digests, Blobs: r.store.Compactions, Files: r.store.Media, Kept: r.store.Files}, time.UTC)...)
				r.model.Chat = func(_ context.Context, q llm.Request) (llm.Response, error) {
					last := q.Messages[len(q.Messages)-1]
					if read.Name != "" && last.Role != "tool" {
						return bottest.Calls(read), nil
					}
					if !strings.Contains(fmt.Sprint(q.Messages), fact) {
						return bottest.Text("no idea"), nil
					}
					if !deleted {
						deleted = true
						conn, err := pgx.Connect(t.Context(), p.url)
						if err == nil {
							_, err = conn.Exec(t.Context(), "DELETE FROM memories")
							err = errors.Join(err, conn.Close(t.Context()))
						}
						if err != nil {
							t.Error(err)
						}
					}
					return bottest.Text("Eve keeps the key of " + fact), nil
				}
			})
			r.post(bottest.Said("m0", "bob", "Hello!"))
			r.settle()
			p.saveFacts(1)
			r.post(bottest.Said("m1", "bob", question))
			r.settle()
			bottest.Want(t, "deleted during a turn", deleted, true)
			bottest.Want(t, "answers with the fact", one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE content LIKE '%'||$1||'%'", fact), 0)
			bottest.Want(t, "replies with the fact", one[int](t, p.db(), "SELECT count(*) FROM outbox WHERE body LIKE '%'||$1||'%'", fact), 0)
		})
	}
}

// Each flush and each summary is met by an erasure. The context is compacted all the same, with a handful of calls.
func TestErasuresStarveNoUpkeep(t *testing.T) {
	t.Parallel()
	const facts = 4 * sessions.MaxCuts
	settings := defaults
	settings.Window = compaction.Window{Context: 24000, Reserve: 4000, Threshold: 12000, Share: 0.5, FlushRatio: 0.9, Summary: 1200}
	p := imported(t, settings, 200, 69)
	var calls atomic.Int32
	slow := func(answer func() llm.Response) func(context.Context, llm.Request) (llm.Response, error) {
		return func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			calls.Add(1)
			select {
			case <-time.After(time.Second):
				return answer(), nil
			case <-ctx.Done():
				return llm.Response{}, context.Cause(ctx)
			}
		}
	}
	r := p.run("a", func(r *replica, c *bot.Config) {
		r.model.Summary = slow(func() llm.Response { return bottest.Text(bottest.GoodSummary) })
		r.model.Flush = slow(func() llm.Response { return bottest.SaveCall(fmt.Sprintf("Fact number %d.", p.facts.Add(1))) })
	})
	erasures, seen := 0, int32(0)
	for _, id := range p.saveFacts(facts) {
		await(t, "the model is asked", func() bool {
			if !r.bot.Upkeep().Busy(bottest.Group) {
				r.bot.Worker().WakeBacklogs(t.Context())
			}
			return calls.Load() > seen || p.look().CompactedSeq > 0
		})
		if p.look().CompactedSeq > 0 {
			break
		}
		seen = calls.Load()
		if _, err := p.reader().Erasure.ForgetMemory(t.Context(), id, memory.Asking{}); err != nil {
			t.Fatal(err)
		}
		erasures++
	}
	if erasures == facts {
		t.Errorf("nothing is compacted after %d erasures and %d calls", erasures, calls.Load())
	}
	if n := calls.Load(); n > facts {
		t.Errorf("the model was called %d times, want %d at most", n, facts)
	}
	t.Logf("compacted after %d erasures and %d calls", erasures, calls.Load())
}

// Each digest of a day is met by an erasure. After [sessions.MaxCuts] of them the next erasure waits until it is stored.
func TestErasuresStarveNoDigest(t *testing.T) {
	t.Parallel()
	p := imported(t, defaults, 40, 20)
	p.exec("UPDATE dingtalk_session_events SET created_at = now() - interval '30 hours'")
	var calls atomic.Int32
	asked := make(chan chan struct{}, sessions.MaxCuts+2) // each call has a channel that ends it; the last ends by itself
	r := p.run("a", func(r *replica, c *bot.Config) {
		c.DigestAt, c.Location = "04:00", time.UTC
		r.model.Summary = func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			cut := make(chan struct{})
			calls.Add(1)
			asked <- cut
			select {
			case <-cut:
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return bottest.Text(bottest.GoodSummary), nil
		}
	})
	for i, id := range p.saveFacts(sessions.MaxCuts + 1) {
		var cut chan struct{}
		await(t, "the digest is asked for", func() bool {
			select {
			case cut = <-asked:
				return true
			default:
				return false
			}
		})
		if _, err := p.reader().Erasure.ForgetMemory(t.Context(), id, memory.Asking{}); err != nil {
			t.Fatal(err)
		}
		if i < sessions.MaxCuts {
			close(cut)
		}
	}
	r.stop()
	if n := one[int](t, p.db(), "SELECT count(*) FROM memories WHERE kind = 'digest'"); n != 1 {
		t.Errorf("%d digests after %d erasures and %d calls, want 1", n, sessions.MaxCuts+1, calls.Load())
	}
}

// Facts are forgotten one after the other while a slow model answers another member: the answer comes after the last one, and
// the message is not set aside.
func TestForgettingSetsNothingAside(t *testing.T) {
	t.Parallel()
	eve := func(n int, words string) sessions.Message {
		m := bottest.Said(fmt.Sprint("eve", n), "eve", words)
		m.ConversationID, m.ConversationType = "p-eve", sessions.Private
		return m
	}
	for name, forget := range map[string]func(*testing.T, *replica, int, int64){
		"a member her own": func(_ *testing.T, r *replica, n int, id int64) {
			r.post(eve(n, fmt.Sprint("/memory forget ", id)))
			await(r.t, "the fact is forgotten", func() bool {
				return one[int](r.t, r.place.db(), "SELECT count(*) FROM memories WHERE id = $1", id) == 0
			})
		},
		"an operator": func(t *testing.T, r *replica, _ int, id int64) {
			t.Helper()
			if _, err := r.place.reader().Erasure.ForgetMemory(t.Context(), id, memory.Asking{}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			const facts = sessions.MaxCuts
			asked := make(chan chan struct{})
			r := p.run("a", func(r *replica, c *bot.Config) {
				c.Rights, c.Erasures = r.store.Rights, r.store.Erasure
				c.Limits = sessions.Limits{PersonTurns: 1, GroupTurns: 1}
				r.model.Chat = func(ctx context.Context, q llm.Request) (llm.Response, error) {
					done := make(chan struct{})
					select {
					case asked <- done:
					case <-ctx.Done():
						return llm.Response{}, context.Cause(ctx)
					}
					select {
					case <-done:
						return bottest.Text("noted"), nil
					case <-ctx.Done():
						return llm.Response{}, context.Cause(ctx)
					}
				}
			})
			ids := p.saveFacts(facts)
			r.post(bottest.Said("m0", "bob", "How are you?"))
			for i, id := range ids {
				answer := <-asked
				forget(t, r, i, id)
				close(answer)
			}
			close(<-asked)
			r.settle()
			bottest.Want(t, "state", one[string](t, p.db(), "SELECT state FROM dingtalk_session_events WHERE msg_id = 'm0'"), "done")
			bottest.Want(t, "outcome", one[string](t, p.db(), "SELECT coalesce(message ->> 'outcome', '') FROM dingtalk_session_events WHERE msg_id = 'm0'"), "")
			bottest.Want(t, "attempts", one[int](t, p.db(), "SELECT attempts FROM dingtalk_session_events WHERE msg_id = 'm0'"), 0)
			bottest.Want(t, "answers", one[int](t, p.db(), "SELECT count(*) FROM outbox WHERE session_key = $1 AND state = 'sent'", bottest.Group), 1)
		})
	}
}
