package bot_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/off"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql/sqltest"
)

// scenario is a conversation, and which of its compactions a crash breaks.
type scenario struct {
	dialogue
	name string
	nth  int // compaction, from 1 on
	// every says that it is broken before every statement of its commit; else before a few of them.
	every bool
}

func scenarios() []scenario {
	settings := func(policy string, threshold int) compaction.Settings {
		s := compaction.Settings{Enabled: true, Window: bottest.Small, Policy: compaction.Policies[policy]}
		s.Window.Threshold = threshold
		return s
	}
	talk := func(n int) func(int) string {
		return func(i int) string { return fmt.Sprintf("talk %d ", i) + bottest.Prose(i, n) }
	}
	// A message jumps over the flush's mark and the compaction's at once: the flush is a step of the compaction.
	budget, balanced := settings("token_budget", 4000), settings("balanced", 4000)
	balanced.Policy.FlushLag = 1000
	fetching := func(i int) string {
		if i <= 2 {
			return fmt.Sprintf("fetch %d please", i)
		}
		return talk(1500)(i)
	}
	return []scenario{
		{dialogue{budget, talk(700)}, "token_budget", 1, true},
		{dialogue{settings("turns", 4000), talk(60)}, "turns", 1, false},
		{dialogue{balanced, talk(700)}, "balanced", 2, false},
		{dialogue{settings("offload", 9000), fetching}, "offload, moving results out", 1, true},
		{dialogue{settings("offload", 9000), fetching}, "offload, telling", 2, true},
	}
}

// ground is a database in which a compaction is due with the next message, and what happens when nothing goes wrong.
type ground struct {
	scenario
	url      string // database
	base     *place // as it was before the first crash
	last     int    // the number of the message that sets the compaction off
	steps    []step
	before   string // decision before the compaction
	after    string // and after it
	calls    int    // calls of the summariser
	end      int64  // cursor after the compaction
	facts    int64
	memories int // stored in the end
}

// P1, P2, P3, P4, P5, P47, P48: a process that dies at any step of a compaction leaves whole tables. It may die between
// any two statements or with the answer to its commit on the way. The next process decides as the dead one had. It
// calls the summariser again only where no text was staged, saves no memory twice, and answers every message.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			g := prepare(t, sc)
			for _, c := range g.crashes() {
				t.Run(c.name, func(t *testing.T) { g.survive(t, c) })
			}
		})
	}
}

// crash is where a bot dies.
type crash struct {
	name   string
	arm    func(r *replica)
	staged bool // the summariser's reply is kept
	over   bool // the compaction is committed
	unread bool // without a decision so far
}

// crashes lists the points at which the scenario's compaction can be broken.
func (g *ground) crashes() []crash {
	all := []crash{{name: "message accepted", unread: true, arm: func(r *replica) {
		r.store.accepted = func() error { r.die(); return bottest.ErrAway }
		r.store.begin = func() error { <-r.dead; return bottest.ErrAway } // a turn could answer before the acceptance returns
	}}}
	die := func(r *replica) func(context.Context, llm.Request) (llm.Response, error) {
		return func(context.Context, llm.Request) (llm.Response, error) { r.die(); return llm.Response{}, errDead }
	}
	staged := false
	for n, s := range g.steps {
		switch s.op {
		case "flush":
			all = append(all, crash{name: "asking for facts", arm: func(r *replica) { r.model.Flush = die(r) }})
		case "stage":
			all = append(all, crash{name: "asking for the summary", arm: func(r *replica) { r.model.Summary = die(r) }})
		}
		for cut := 1; cut <= s.statements+2; cut++ {
			if 1 < cut && cut <= s.statements && cut%4 > 0 && (!g.every || s.op != "compact") {
				continue // the policies have these in common
			}
			c := crash{name: fmt.Sprintf("%s, statement %d of %d", s.op, cut, s.statements)}
			switch cut {
			case s.statements + 1:
				c.name = s.op + ", answer to the commit"
			case s.statements + 2:
				c.name = s.op + ", done"
			}
			through := cut > s.statements // the commit
			c.staged, c.over = staged || through && s.op == "stage", through && s.op == "compact"
			c.arm = func(r *replica) { r.dieAt(n, cut, s.statements) }
			all = append(all, c)
		}
		staged = staged || s.op == "stage"
	}
	return all
}

// dieAt has the bot die in the step of a number, before the statement with the number cut.
func (r *replica) dieAt(n, cut, statements int) {
	r.store.before = func(_ string, at int) error {
		switch {
		case at != n:
		case cut <= statements:
			r.store.link.watch(cut, false)
		case cut == statements+1:
			r.store.link.watch(0, true)
		}
		return nil
	}
	r.store.after = func(_ string, at int) error {
		if at != n || cut <= statements+1 {
			return nil
		}
		r.die()
		return bottest.ErrAway
	}
}

// prepare talks until the scenario's compaction, once to find out when that is, once to stop before it, and once to see
// it happen.
func prepare(t *testing.T, sc scenario) *ground {
	t.Helper()
	g := &ground{scenario: sc}
	committed := func(p *place) int {
		return one[int](t, p.db(), "SELECT count(*) FROM compaction_log WHERE outcome = 'committed'")
	}
	first := g.at(t, sqltest.URL(t))
	r := first.run("first", nil)
	for g.last = 1; ; g.last++ {
		r.post(first.message(g.last))
		r.settle()
		if committed(first) >= sc.nth {
			break
		}
		if g.last > 60 {
			t.Fatalf("%d compactions after %d messages", committed(first), g.last)
		}
	}
	r.stop()

	base := g.at(t, sqltest.URL(t))
	r = base.run("base", nil)
	for i := 1; i < g.last; i++ {
		r.post(base.message(i))
		r.settle()
	}
	bottest.Want(t, "compactions before", committed(base), sc.nth-1)
	r.die()
	r.stop()
	g.url = base.url
	g.keep(base)
	g.base = base

	ref := g.again(t)
	before := ref.look()
	r = ref.run("ref", nil)
	r.post(ref.message(g.last))
	r.settle()
	bottest.Want(t, "compactions", committed(ref), sc.nth)
	g.steps, g.calls = r.store.done(), len(r.model.Requests("summary"))
	g.before, g.end = g.decision(r, before.LastSeq, false), ref.look().CompactedSeq
	g.after = g.decision(r, before.LastSeq, true)
	g.memories = one[int](t, ref.db(), "SELECT count(*) FROM memories")
	for _, e := range bottest.Attempts(t, r.store.Compactions) {
		t.Logf("message %d: %s %s %d-%d, %d to %d tokens", g.last, e.Trigger, e.Outcome, e.StartSeq, e.EndSeq, e.TokensBefore, e.TokensAfter)
	}
	r.die()
	r.stop()
	return g
}

// at is a database with the scenario's conversation.
func (g *ground) at(t *testing.T, url string) *place {
	t.Helper()
	p := &place{t: t, url: url, talk: g.dialogue, facts: &atomic.Int64{}}
	p.facts.Store(g.facts)
	return p
}

// tables are those that a conversation changes.
var tables = []string{
	"dingtalk_sessions", "dingtalk_session_events", "session_summaries", "compaction_log", "compaction_jobs", "blobs",
	"outbox", "tool_runs", "flush_debts", "memories",
}

// keep stores the conversation as it is, for again to bring it back.
func (g *ground) keep(p *place) {
	p.exec("CREATE SCHEMA kept")
	for _, table := range tables {
		p.exec("CREATE TABLE kept." + table + " AS TABLE " + table)
	}
	g.facts = p.facts.Load()
}

// again is the database as it was kept.
func (g *ground) again(t *testing.T) *place {
	t.Helper()
	p := g.at(t, g.url)
	p.conn, p.store = g.base.db(), g.base.reader()
	p.exec("DELETE FROM replicas")
	for _, table := range tables {
		p.exec("DELETE FROM " + table)
		p.exec("INSERT INTO " + table + " OVERRIDING SYSTEM VALUE TABLE kept." + table)
	}
	return p
}

// exec runs a statement of the test's own.
func (p *place) exec(statement string, args ...any) {
	p.t.Helper()
	if _, err := p.db().Exec(p.t.Context(), statement, args...); err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
}

// look is the session's row.
func (p *place) look() sessions.Session {
	p.t.Helper()
	row, err := p.reader().Sessions.Session(p.t.Context(), bottest.Group)
	if err != nil {
		p.t.Fatal(err)
	}
	return row
}

// decision is what the bot decided on, before the compaction or after it. The message that set it off counts as said
// where the log does not have it yet.
func (g *ground) decision(r *replica, before int64, after bool) string {
	views := r.store.read()
	if len(views) == 0 {
		r.t.Fatal("upkeep did not read the conversation")
	}
	at := 0
	for i, v := range views {
		if compactedIn(v) == compactedIn(views[0]) {
			at = i
		} else if after {
			at = i
			break
		}
	}
	if after && compactedIn(views[at]) == compactedIn(views[0]) {
		r.t.Fatal("nothing was read after the compaction")
	}
	return decided(r.bot, views[at], g.words(g.last), before)
}

// compactedIn separates views before a compaction from those after it.
func compactedIn(v sessions.View) string {
	moved := 0
	for _, e := range v.Tail {
		if e.Blob != "" {
			moved++
		}
	}
	return fmt.Sprint(v.Session.CompactedSeq, moved)
}

// decided is the decision of a bot on a view, and the range that it would summarize.
func decided(b *bot.Bot, v sessions.View, asked string, before int64) string {
	b.Views().Show(&v)
	size := b.Views().Sizes.ContextSize(v)
	if v.Session.LastSeq == before {
		size += view.Calibrated(bottest.Counter.Count(asked)+tokens.MessageOverhead, v.Session.CalibrationFactor)
	}
	set := b.Views().Choices.Settings(v.Session)
	need := b.Views().Sizes.Decide(v, size)
	cut, err := set.Policy.Plan(set.Window.Counted(v.Session.CalibrationFactor), b.Views().Sizes.State(v, size))
	return fmt.Sprintf("%v %q, cut %+v %v", need.Compact, need.Trigger, cut, err)
}

// survive breaks the compaction at one point, and has another bot go on.
func (g *ground) survive(t *testing.T, c crash) {
	t.Helper()
	p := g.again(t)
	before := p.look()
	a := p.run("a", func(r *replica, _ *bot.Config) { c.arm(r) })
	a.post(p.message(g.last))
	await(t, "the crash point is reached", a.isDead)
	a.stop()
	p.forget("a")
	p.whole()
	crashed := p.look()
	if moved := crashed.CompactedSeq != before.CompactedSeq; moved && !c.over {
		t.Errorf("the cursor is at %d, and nothing was committed", crashed.CompactedSeq)
	}
	wanted := g.before
	if c.over {
		wanted = g.after
	}
	if !c.unread {
		bottest.Want(t, "decision", p.probe(g, before.LastSeq), wanted)
	}

	b := p.run("b", nil)
	b.post(p.message(g.last)) // DingTalk delivers again what was not acknowledged
	b.settle()
	if c.unread {
		bottest.Want(t, "decision", g.decision(b, before.LastSeq, false), wanted)
	}
	b.post(bottest.Said("next", "bob", "and what next?"))
	b.settle()
	p.whole()
	calls := g.calls
	if c.staged || c.over {
		calls = 0
	}
	bottest.Want(t, "summaries asked for after the crash", len(b.model.Requests("summary")), calls)
	bottest.Want(t, "compactions", one[int](t, p.db(), "SELECT count(*) FROM compaction_log WHERE outcome = 'committed'"), g.nth)
	if end := p.look().CompactedSeq; end < g.end || c.staged && end != g.end {
		t.Errorf("the cursor is at %d, without a crash it is at %d", end, g.end)
	}
	bottest.Want(t, "messages", one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE role = 'user' AND state = 'done'"), g.last+1)
	b.die() // without a flush
	bottest.Want(t, "memories", one[int](t, p.db(), "SELECT count(*) FROM memories"), g.memories)
}

// probe is what a bot that comes after the dead one decides on the session as it is.
func (p *place) probe(g *ground, before int64) string {
	p.t.Helper()
	ctx := p.t.Context()
	s := p.reader()
	b, err := bot.New(bot.Config{
		Stores: s.Ports(), Memory: s.Memory(), Transport: &bottest.Wire{}, Counter: bottest.Counter, Replica: "probe", Values: reload.Values{Model: &bottest.Script{}, Compaction: p.talk.settings},
		Tools:   []chat.Tool{bottest.HandTool{Name: "fetch", Reads: true}},
		Elector: s.Replicas, Metrics: prometheus.NewRegistry(), Parts: off.Parts(),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	l, err := s.Leases.Acquire(ctx, bottest.Group, "probe")
	if err != nil {
		p.t.Fatal(err)
	}
	v, err := s.Turns.Begin(ctx, l, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := s.Leases.Resign(ctx, "probe"); err != nil {
		p.t.Fatal(err)
	}
	return decided(b, v, g.words(g.last), before)
}
