package bot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// ready is a conversation whose compaction is due with its next message.
func ready(t *testing.T) *ground {
	t.Helper()
	return prepare(t, scenarios()[0])
}

// stand has a bot wait at a gate at a point of its compaction: in the model's answer, or before a step, the first time.
func (r *replica) stand(point string, g bottest.Gate) {
	var once atomic.Bool
	switch point {
	case "summary", "repair":
		calls := 0
		answer := r.model.Summary
		r.model.Summary = func(ctx context.Context, q llm.Request) (llm.Response, error) {
			calls++
			if at := 1 + strings.Count(point, "repair"); calls == at {
				if err := g.Pass(ctx); err != nil {
					return llm.Response{}, err
				}
			}
			if answer != nil {
				return answer(ctx, q)
			}
			return bottest.Text(bottest.GoodSummary), nil
		}
	default:
		r.store.before = func(op string, _ int) error {
			if op == point && once.CompareAndSwap(false, true) {
				return g.Pass(r.store.link.life)
			}
			return nil
		}
	}
}

// contents is what the tables of the conversation hold.
func (p *place) contents() string {
	p.t.Helper()
	var all strings.Builder
	for _, table := range tables {
		for _, row := range rows[struct{ Row string }](p.t, p.db(), "SELECT to_jsonb(x)::text FROM "+table+" x ORDER BY 1") {
			all.WriteString(table + " " + row.Row + "\n")
		}
	}
	return all.String()
}

// P39, P52: a bot that loses its session in the middle of a compaction writes nothing any more. The next owner may have
// compacted the range already or be about to; the range is summarized once.
func TestHandedOverInTheMiddle(t *testing.T) {
	t.Parallel()
	ground := ready(t)
	for _, point := range []string{"summary", "stage", "compact"} {
		for _, both := range []bool{false, true} {
			t.Run(fmt.Sprintf("at %s, both at once %v", point, both), func(t *testing.T) {
				p := ground.again(t)
				g, h := bottest.NewGate(), bottest.NewGate()
				step, meanwhile := point, "summary" // writes of the old owner, and the new owner's state by then
				switch point {
				case "summary":
					step = "stage"
				case "compact":
					meanwhile = "compact"
				}
				a := p.run("a", func(r *replica, _ *bot.Config) { r.stand(point, g) })
				a.post(p.message(ground.last))
				receive(t, g.In)
				a.store.silence()
				p.forget("a")
				b := p.run("b", func(r *replica, _ *bot.Config) {
					if both {
						r.stand(meanwhile, h)
					}
				})
				b.post(bottest.Said("next", "bob", "and what next?"))
				if both {
					receive(t, h.In)
				} else {
					b.settle()
				}
				before := p.contents()
				g.Out <- struct{}{}
				await(t, "the old owner has ended", func() bool { return a.bot.Upkeep().Live() == 0 })
				bottest.Want(t, "what the old owner wrote", p.contents() == before, true)
				if err := a.store.errorOf(step); !errors.Is(err, sessions.ErrLeaseLost) {
					t.Errorf("the old owner got %v", err)
				}
				if both {
					h.Out <- struct{}{}
				}
				b.settle()
				p.whole()
				bottest.Want(t, "compactions", one[int](t, p.db(), "SELECT count(*) FROM compaction_log"), 1)
			})
		}
	}
}

// receive waits for a bot to come to a gate.
func receive(t *testing.T, in <-chan struct{}) {
	t.Helper()
	select {
	case <-in:
	case <-time.After(patience):
		t.Fatal("waited in vain for a signal")
	}
}

// P40: however many messages come during a compaction, one more look at the session follows it.
func TestRequestsDuringACompactionAreOne(t *testing.T) {
	t.Parallel()
	ground := ready(t)
	looks := func(messages int) int {
		p := ground.again(t)
		g := bottest.NewGate()
		r := p.run("a", func(r *replica, _ *bot.Config) { r.stand("summary", g) })
		r.post(p.message(ground.last))
		receive(t, g.In)
		for i := range messages {
			n := len(r.wire.Sends())
			r.post(bottest.Said(fmt.Sprintf("during%d", i), "bob", bottest.Prose(i, 20)))
			await(t, "the message is answered", func() bool {
				return len(r.wire.Sends()) > n && r.bot.Turns().Live() == 0 && r.bot.Outbox().Waiting() == 0
			})
		}
		before := len(r.store.read())
		g.Out <- struct{}{}
		r.settle()
		p.whole()
		bottest.Want(t, "summaries asked for", len(r.model.Requests("summary")), 1)
		r.die()
		r.stop()
		return len(r.store.read()) - before
	}
	alone := looks(0)
	for _, n := range []int{1, 6} {
		bottest.Want(t, fmt.Sprintf("looks more with %d messages", n), looks(n)-alone, 1)
	}
}

// P40: what becomes due at the instant at which maintenance finds that there is no more to do is not lost.
func TestRequestAtTheLastInstant(t *testing.T) {
	t.Parallel()
	ground := ready(t)
	p := ground.again(t)
	var once atomic.Bool
	r := p.run("a", func(r *replica, _ *bot.Config) {
		r.store.began = func(views int) {
			v := r.store.read()[views-1]
			if v.Session.CompactionCount == 0 || !once.CompareAndSwap(false, true) {
				return
			}
			// It has been read, and nothing is due: now something is.
			n := len(r.wire.Sends())
			for i := range 4 {
				r.post(bottest.Said(fmt.Sprintf("late%d", i), "bob", bottest.Prose(i, 900)))
				await(t, "the message is answered", func() bool {
					return len(r.wire.Sends()) > n+i && r.bot.Turns().Live() == 0 && r.bot.Outbox().Waiting() == 0
				})
			}
		}
	})
	r.post(p.message(ground.last))
	r.settle()
	p.whole()
	bottest.Want(t, "compactions", p.look().CompactionCount, 2)
}

// P45: a new conversation that begins while the old one is compacted has nothing of it, and the old one's tables are
// whole, whichever step the compaction was at.
func TestRenewedInTheMiddle(t *testing.T) {
	t.Parallel()
	sc := scenarios()[0]
	sc.words = func(i int) string { // the summary lacks what the audit looks for: a repair is asked for
		return fmt.Sprintf("talk %d: the report is at https://example.com/reports/%d, ticket OPS-%d ", i, 4711+i, 4711+i) + bottest.Prose(i, 700)
	}
	ground := prepare(t, sc)
	for _, point := range []string{"summary", "repair", "stage", "compact", "commit"} {
		t.Run(point, func(t *testing.T) {
			p := ground.again(t)
			g := bottest.NewGate()
			r := p.run("a", func(r *replica, c *bot.Config) {
				c.InlineDeadline = 100 * time.Millisecond
				if point == "commit" {
					r.store.before = func(op string, _ int) error {
						if op == "compact" {
							r.store.link.holdCommit(&g)
						}
						return nil
					}
				} else {
					r.stand(point, g)
				}
			})
			r.post(p.message(ground.last))
			receive(t, g.In)
			n := len(r.wire.Sends())
			r.post(bottest.Said("new", "root", "/new"))
			if point != "commit" { // a commit under way is waited for
				await(t, "the new conversation has begun", func() bool { return len(r.wire.Sends()) > n })
			}
			g.Out <- struct{}{}
			r.settle()
			s := p.look()
			bottest.Want(t, "generation", s.Gen, 1)
			bottest.Want(t, "summaries in the view", one[int](t, p.db(), "SELECT count(*) FROM session_summaries WHERE status = 'active'"), 0)
			committed := one[int](t, p.db(), "SELECT count(*) FROM compaction_log WHERE outcome = 'committed'")
			bottest.Want(t, "committed", committed, map[bool]int{true: 1, false: 0}[point == "commit"])
			bottest.Want(t, "summaries", one[int](t, p.db(), "SELECT count(*) FROM session_summaries"), committed)
			r.post(bottest.Said("after", "bob", "hello again"))
			r.settle()
			if last := r.model.Requests("chat"); strings.Contains(fmt.Sprint(last[len(last)-1].Messages), "talk 1") {
				t.Error("the new conversation shows the old one")
			}
		})
	}
}

// P45: a stop in the middle of a compaction ends soon, leaves nothing running and nothing half written, and what was
// staged is not asked for again.
func TestStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	ground := ready(t)
	for _, point := range []string{"summary", "compact", "commit"} {
		t.Run(point, func(t *testing.T) {
			p := ground.again(t)
			g := bottest.NewGate()
			a := p.run("a", func(r *replica, _ *bot.Config) {
				if point == "summary" {
					r.stand(point, g)
					return
				}
				r.store.before = func(op string, _ int) error {
					if op != "compact" {
						return nil
					}
					if point == "commit" {
						r.store.link.holdCommit(&g)
						return nil
					}
					return g.Pass(r.store.link.life)
				}
			})
			a.post(p.message(ground.last))
			receive(t, g.In)
			if point == "compact" {
				a.begin()
				receive(t, a.bot.Draining())
				g.Out <- struct{}{}
			}
			a.stop()
			bottest.Want(t, "maintenance left", a.bot.Upkeep().Live(), 0)
			p.whole()
			cut := p.look().CompactedSeq == 0
			bottest.Want(t, "cut off", cut, point != "compact")
			bottest.Want(t, "failures counted", p.look().CompactFailures, 0)
			b := p.run("b", nil)
			b.post(bottest.Said("next", "bob", "and what next?"))
			b.settle()
			p.whole()
			bottest.Want(t, "compactions", p.look().CompactionCount, 1)
			bottest.Want(t, "summaries asked for after the stop", len(b.model.Requests("summary")), map[bool]int{true: 1, false: 0}[point == "summary"])
		})
	}
}
