package bot_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// machine is a bot on a storage in memory that drawn actions drive: people who talk, commands, crashes, a clock that
// moves, models that fail. After every action the laws of machine_checks_test.go must hold. Faults that the bot's
// goroutines find are collected and reported by the next check.
type machine struct {
	t       *testing.T
	rt      *rapid.T
	shelf   *bottest.Shelf
	w       *bottest.World
	wires   []*bottest.Wire // wires of all processes so far
	set     compaction.Settings
	factor  float64 // the provider's tokens over ours
	recall  view.Recall
	reports bool // whether it says how many it counted
	failed  *atomic.Bool
	posted  map[sessions.MessageID]string
	bodies  map[int64]string // the log's bodies, as first seen
	before  snapshot
	first   int // the number of the first message of this generation

	mu             sync.Mutex
	summary, flush string // how the two kinds of upkeep calls are answered
	rounds, size   int    // tool rounds that the next turns ask for in all, words of a result
	calls          int    // tool calls so far
	asked          []asked
	faults         []string
	dead           bool
	doubtful       bool // the process was cut off in mid-write: its result is unknown
	epoch          int  // grows with everything that may change what a view begins with
	calm           bool // one message at a time, and no concurrent upkeep
	staged         bool // the compaction under way takes up what was staged
	opened         map[int64]int64
	flushed        map[[2]int]int
}

// asked is one request, with what a provider would count and how it was answered.
type asked struct {
	llm.Request
	kind   string
	tokens int // by the test's own count
	over   bool
	epoch  int
	calm   bool
}

// The laws hold in any order of events, under any policy and in any mode. Each carries its number at its check, in
// machine_checks_test.go and machine_requests_test.go, or at its action.
func TestMachine(t *testing.T) {
	t.Parallel()
	failed := new(atomic.Bool)
	enough := enoughRuns()
	rapid.Check(t, func(rt *rapid.T) {
		if enough() && !failed.Load() { // shrinking goes on
			return
		}
		bubble(t, func(t *testing.T) {
			t.Helper()
			m := &machine{
				t: t, rt: rt, shelf: bottest.NewShelf(), posted: map[sessions.MessageID]string{}, bodies: map[int64]string{},
				summary: "good", flush: "save", failed: failed, opened: map[int64]int64{}, flushed: map[[2]int]int{},
			}
			m.set = drawSettings(rt)
			m.recall = rapid.SampledFrom([]view.Recall{view.RecallOff, view.RecallAlways}).Draw(rt, "recall")
			m.factor = rapid.SampledFrom([]float64{1, 1, 1, 0.4, 0.7, 1.6, 2.5}).Draw(rt, "factor")
			m.reports = rapid.Bool().Draw(rt, "reports usage")
			m.boot()
			rt.Repeat(m.actions())
		})
	})
}

// enoughRuns counts histories, and reports whether there have been enough. Each takes as long as a hundred runs of
// other properties. Without a requested number or seed there are few of them, and fewer under the race detector.
func enoughRuns() func() bool {
	const most, longest = 24, 20 * time.Second
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" || f.Name == "rapid.seed" })
	runs, began := 0, time.Now()
	return func() bool {
		runs++
		return !asked && (runs > most || time.Since(began) > longest)
	}
}

// bubble runs f in a bubble with a clock of its own, and passes on the panic by which rapid ends a run. Rapid compares
// failures by their stack traces alone. A run without enough data must have another trace than a run that broke a law,
// or the shrinker reports "invalid data" in place of the law.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	var broke any
	synctest.Test(t, func(t *testing.T) {
		defer func() { broke = recover() }()
		f(t)
	})
	switch {
	case broke == nil:
	case fmt.Sprintf("%T", broke) == "rapid.invalidData":
		panic(broke)
	default:
		panic(broke)
	}
}

// drawSettings is any policy in any mode. Counts are a few times smaller than a deployment's, so that few turns reach
// them.
func drawSettings(rt *rapid.T) compaction.Settings {
	p := compaction.Policies[rapid.SampledFrom(slices.Sorted(maps.Keys(compaction.Policies))).Draw(rt, "policy")]
	switch p.Name {
	case "sliding_window":
		p.TailMessages, p.Window, p.HardLimit, p.ContextSize = 8, 4, 10, 24
	case "archive":
		p.TailMessages, p.MaxMessages, p.ContextSize = 4, 10, 24
	case "turns":
		p.TailTurns, p.Segment = 2, 2
	case "balanced":
		p.TailMessages = 10
	}
	p.Mode = rapid.SampledFrom([]compaction.Mode{
		p.Mode, compaction.SummaryOnly, compaction.SummaryPlusPrune, compaction.PruneOnly, compaction.OffloadThenCompact,
	}).Draw(rt, "mode")
	if p.OffloadOver == 0 {
		p.OffloadAt = 0.7
	}
	p.OffloadOver, p.OffloadEnough = 900, 1500
	return compaction.Settings{Enabled: true, Window: bottest.Small, Policy: p}
}

// boot starts a process on the shelf.
func (m *machine) boot() {
	m.wires = append(m.wires, &bottest.Wire{})
	m.mu.Lock()
	m.dead = false
	m.mu.Unlock()
	m.w = bottest.Start(m.t, bottest.Setup{
		Shelf: m.shelf, Wire: m.wires[len(m.wires)-1], Name: sessions.ReplicaID(fmt.Sprint("r", len(m.wires))),
		Config: func(c *bot.Config) {
			c.Compaction, c.InlineDeadline, c.Model = m.set, 7*time.Second, m
			c.Remember.Recall, c.Remember.RecallTokens = m.recall, 800
			c.Stores.Jobs, c.Stores.Compactions = jobsTap{c.Stores.Jobs, m}, compactionsTap{c.Stores.Compactions, m}
			c.Stores.Sessions = sessionsTap{c.Stores.Sessions, m}
			c.Memory.Search, c.Memory.Flushes = searchTap{c.Memory.Search, m}, flushesTap{c.Memory.Flushes, m}
			c.Tools = []chat.Tool{bottest.HandTool{Name: "look", Reads: true, F: m.look}, bottest.HandTool{Name: "act", F: m.look}}
		},
	})
}

// Search finds much, and something else each time.
func (p searchTap) Search(context.Context, memory.Reader, memory.Query) ([]memory.Hit, error) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.calls++
	return []memory.Hit{{Path: "MEMORY.md", Content: fmt.Sprint("recalled ", p.m.calls, " ", bottest.Prose(p.m.calls, 200))}}, nil
}

// look is what a tool finds: nothing that was found before.
func (m *machine) look(context.Context, chat.ToolInput) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return fmt.Sprintf("finding %d. Tool result is at: /etc/passwd. %s", m.calls, bottest.Prose(m.calls, m.size)), nil
}

// fault keeps what a goroutine of the bot found wrong. The words before the colon are the same for every run.
func (m *machine) fault(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

func (m *machine) isDead() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.dead }

// change notes that requests may begin otherwise from now on.
func (m *machine) change() { m.mu.Lock(); defer m.mu.Unlock(); m.epoch++ }

// tokensOf counts texts once.
var tokensOf = func() func(string) int {
	var mu sync.Mutex
	known := map[string]int{}
	return func(text string) int {
		mu.Lock()
		defer mu.Unlock()
		n, ok := known[text]
		if !ok {
			n = bottest.Counter.Count(text)
			known[text] = n
		}
		return n
	}
}()

// Generate counts like a provider, refuses requests that are too large, and answers as the machine's modes say.
func (m *machine) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	r.Messages = slices.Clone(r.Messages)
	a := asked{Request: r, kind: bottest.KindOfRequest(r)}
	if a.kind == "chat" {
		a.tokens = m.w.Views.Frames.Common.Tokens - tokensOf(m.w.Views.Frames.Common.System)
	}
	for _, msg := range r.Messages {
		a.tokens += tokensOf(msg.Content) + tokens.MessageOverhead
		for _, c := range msg.ToolCalls {
			a.tokens += tokensOf(c.Arguments) + tokens.MessageOverhead
		}
	}
	if a.kind == "chat" {
		// Recalled text stands before the question, for this turn alone: everything else is as if it were not there.
		a.Messages = slices.DeleteFunc(slices.Clone(r.Messages), func(m llm.Message) bool { return strings.HasPrefix(m.Content, bottest.RecallHead) })
	}
	m.mu.Lock()
	a.over = float64(a.tokens)*m.factor > float64(m.set.Window.Context-r.MaxOutput)
	a.epoch, a.calm = m.epoch, m.calm && !m.dead // a dead process asks with a view that may be out of date
	m.asked = append(m.asked, a)
	summary, flush := m.summary, m.flush
	m.mu.Unlock()
	if a.over {
		return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errors.New("too long")}
	}
	switch a.kind {
	case "flush":
		return m.answerFlush(ctx, flush)
	case "summary":
		return m.answerSummary(ctx, summary, a)
	}
	return m.answerChat(a)
}

// answerChat calls tools for as many rounds as were drawn, then answers.
func (m *machine) answerChat(a asked) (llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := bottest.Text("re: " + tokens.HeadTail(bottest.LastWords(a.Request), 60))
	if strings.Contains(bottest.LastWords(a.Request), bottest.NoMoreCalls) {
		m.rounds = 0
	}
	if m.rounds > 0 {
		m.rounds--
		m.calls += 2 // ids come again in every round, arguments don't
		r = bottest.Calls(bottest.Call("c1", "look", fmt.Sprintf(`{"n":%d}`, m.calls)), bottest.Call("c2", "act", fmt.Sprintf(`{"n":%d}`, m.calls+1)))
	}
	if m.reports {
		r.Usage = sessions.Usage{Prompt: int(float64(a.tokens) * m.factor), Completion: 20}
	}
	return r, nil
}

func (m *machine) answerFlush(ctx context.Context, mode string) (llm.Response, error) {
	switch mode {
	case "prose":
		return bottest.Text("NO_REPLY secret words of a flush"), nil
	case "junk":
		return bottest.Calls(bottest.Call("f", "memory_save", `{"facts":"no`)), nil
	case "nothing":
		return bottest.Calls(bottest.Call("f", "memory_save", `{"facts":[],"nothing_to_save":true}`)), nil
	case "error":
		return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
	case "hang":
		return bottest.Hang(ctx, llm.Request{})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return bottest.SaveCall(fmt.Sprintf("fact number %d", len(m.asked)), "a fact that is repeated"), nil
}

// The taps see what goes to the storage, and what comes from it.
type (
	jobsTap struct {
		sessions.Jobs
		m *machine
	}
	compactionsTap struct {
		sessions.Compactor
		m *machine
	}
	sessionsTap struct {
		sessions.States
		m *machine
	}
	searchTap struct {
		memory.Searcher
		m *machine
	}
	flushesTap struct {
		memory.Flushes
		m *machine
	}
)

func (p jobsTap) OpenJob(ctx context.Context, l sessions.Lease, j sessions.Job) (sessions.Source, error) {
	src, err := p.Jobs.OpenJob(ctx, l, j)
	if err == nil {
		p.m.sawOpen(j, src)
	}
	return src, err
}

func (p compactionsTap) Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) (sessions.Compacted, error) {
	before, _ := p.m.shelf.Mem.Sessions.Session(ctx, l.Key)
	done, err := p.Compactor.Compact(ctx, l, c)
	if err == nil {
		p.m.sawCompact(ctx, before, c)
	}
	return done, err
}

func (p compactionsTap) Undo(ctx context.Context, l sessions.Lease, event int64, rest int) (sessions.LogEntry, error) {
	defer p.m.change()
	return p.Compactor.Undo(ctx, l, event, rest)
}

func (p sessionsTap) Renew(ctx context.Context, l sessions.Lease) error {
	defer p.m.change()
	return p.States.Renew(ctx, l)
}

func (p flushesTap) Flush(ctx context.Context, l sessions.Lease, f memory.Flush) (memory.Receipt, error) {
	before, _ := p.m.w.Store.Session(ctx, l.Key)
	r, err := p.Flushes.Flush(ctx, l, f)
	if err == nil && f.Last {
		p.m.sawFlush(before, f)
	}
	return r, err
}
