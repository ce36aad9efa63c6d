package compaction

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

var seed = Window{Context: 128000, Reserve: 20000, Threshold: 80000, Share: 0.5, FlushRatio: 0.9, Summary: 1200}

func TestBudgetsOfTheDefaults(t *testing.T) {
	t.Parallel()
	for name, got := range map[string][2]int{
		"usable":  {seed.Usable(), 108000},
		"max":     {seed.MaxTokens(), 64000},
		"trigger": {seed.Trigger(), 80000},
		"flush":   {seed.FlushAt(), 72000},
		"target":  {seed.Target(), 64000},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %d, want %d", name, got[0], got[1])
		}
	}
}

func windows() *rapid.Generator[Window] {
	return rapid.Custom(func(t *rapid.T) Window {
		ctx := rapid.IntRange(2000, 2_000_000).Draw(t, "context")
		return Window{
			Context: ctx, Reserve: rapid.IntRange(0, ctx-1000).Draw(t, "reserve"), Threshold: rapid.IntRange(500, 3_000_000).Draw(t, "threshold"),
			Share: rapid.Float64Range(0.01, 1).Draw(t, "share"), FlushRatio: rapid.Float64Range(0.1, 0.99).Draw(t, "ratio"), Summary: 1200,
		}
	})
}

// P26, P35: maxTokens is the smaller of share and usable; no budget grows with the reserve; the flush comes before the
// compaction, which aims below what set it off.
func TestBudgetLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := windows().Draw(t, "window")
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		if m := w.MaxTokens(); m > w.Usable() || float64(m) > float64(w.Context)*w.Share {
			t.Fatalf("max %d of %+v", m, w)
		}
		if w.FlushAt() >= w.Trigger() || w.Trigger() > w.Usable() {
			t.Fatalf("flush at %d, trigger %d, usable %d", w.FlushAt(), w.Trigger(), w.Usable())
		}
		if w.Target() >= w.Trigger() {
			t.Fatalf("target %d is not below trigger %d", w.Target(), w.Trigger())
		}
		more := w
		more.Reserve += rapid.IntRange(0, w.Context-w.Reserve-1).Draw(t, "more")
		if more.MaxTokens() > w.MaxTokens() || more.Trigger() > w.Trigger() || more.Usable() > w.Usable() {
			t.Fatalf("a larger reserve raised a budget: %+v", more)
		}
	})
}

func TestImpossibleWindowsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Window){
		"no window":          func(w *Window) { w.Context = 0 },
		"reserve is all":     func(w *Window) { w.Reserve = w.Context },
		"negative reserve":   func(w *Window) { w.Reserve = -1 },
		"no threshold":       func(w *Window) { w.Threshold = 0 },
		"share 0":            func(w *Window) { w.Share = 0 },
		"share above 1":      func(w *Window) { w.Share = 1.01 },
		"share NaN":          func(w *Window) { w.Share = math.NaN() },
		"flush at trigger":   func(w *Window) { w.FlushRatio = 1 },
		"flush ratio is NaN": func(w *Window) { w.FlushRatio = math.NaN() },
	} {
		w := seed
		if change(&w); w.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAssess(t *testing.T) {
	t.Parallel()
	p, now := Policies["token_budget"], time.Now()
	fresh := sessions.Session{FlushEpoch: -1}
	flushed := sessions.Session{FlushEpoch: 0}
	for name, c := range map[string]struct {
		s      sessions.Session
		tokens int
		want   Need
	}{
		"small":                         {fresh, 71999, Need{}},
		"at 90 %":                       {fresh, 72000, Need{Flush: true}},
		"at 90 %, flushed in the cycle": {flushed, 72000, Need{}},
		"T - 1":                         {flushed, 79999, Need{}},
		"T":                             {flushed, 80000, Need{Compact: true}},
		"one message jumped over both":  {fresh, 95000, Need{Flush: true, Compact: true}},
		"next cycle":                    {sessions.Session{FlushEpoch: 0, CompactionCount: 1}, 72000, Need{Flush: true}},
		"overflow":                      {flushed, 108000, Need{Compact: true, Hard: true}},
		"resting after no progress":     {sessions.Session{RearmTokens: 100000}, 90000, Need{}},
		"rested, but it overflows":      {sessions.Session{RearmTokens: 200000}, 110000, Need{Compact: true, Hard: true}},
		"retry later":                   {sessions.Session{CompactRetryAt: now.Add(time.Minute)}, 90000, Need{}},
		"flush failed three times":      {sessions.Session{FlushEpoch: -1, FlushFailures: 3}, 73000, Need{}},
	} {
		if got := p.Assess(c.s, seed, c.tokens, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// logs draws a tail of whole turns, as the store holds it.
func logs() *rapid.Generator[[]sessions.Event] {
	return rapid.Custom(func(t *rapid.T) []sessions.Event {
		var out []sessions.Event
		add := func(e sessions.Event) {
			e.Seq, e.Tokens = int64(len(out)+1), rapid.IntRange(1, 3000).Draw(t, "tokens")
			out = append(out, e)
		}
		for range rapid.IntRange(0, 12).Draw(t, "turns") {
			for range rapid.IntRange(1, 3).Draw(t, "asked") {
				add(sessions.Event{Role: sessions.RoleUser})
			}
			for range rapid.IntRange(0, 3).Draw(t, "rounds") {
				add(sessions.Event{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c"}}})
				add(sessions.Event{Role: sessions.RoleTool, ToolCallID: "c"})
			}
			add(sessions.Event{Role: sessions.RoleAssistant})
		}
		return out
	})
}

// P4, P16: a cut lies before a turn's first message, never inside an exchange with a tool; the newest turn stays.
// P27: where more than one turn is there, there is something to cut.
func TestPlanCutsBetweenTurns(t *testing.T) {
	t.Parallel()
	p := Policies["token_budget"]
	rapid.Check(t, func(t *rapid.T) {
		w, tail := windows().Draw(t, "window"), logs().Draw(t, "tail")
		fixed := rapid.IntRange(0, 5000).Draw(t, "fixed")
		cut, err := p.Plan(w, tail, fixed, 0)
		starts := TurnStarts(tail)
		if full := w.Available(fixed) <= 0; errors.Is(err, ErrSystemDominates) != (full && len(tail) > 0) {
			t.Fatalf("%d tokens are available, and the plan says %v", w.Available(fixed), err)
		}
		if err != nil {
			if errors.Is(err, ErrAllRecent) && len(starts) > 1 && TokensOf(tail) > w.Target() {
				t.Fatalf("%d turns of %d tokens, and nothing to cut", len(starts), TokensOf(tail))
			}
			return
		}
		if cut.Index <= 0 || cut.Index >= len(tail) || tail[cut.Index].Role != sessions.RoleUser || tail[cut.Index-1].Role == sessions.RoleUser {
			t.Fatalf("cut at %d of %d is no turn's beginning", cut.Index, len(tail))
		}
		if cut.Index > starts[len(starts)-1] {
			t.Fatal("the newest turn was cut")
		}
		if cut.Through != tail[cut.Index-1].Seq || cut.Source+cut.Recent != TokensOf(tail) {
			t.Fatalf("cut %+v does not add up", cut)
		}
		budget := int(0.6 * float64(max(0, w.Available(fixed))))
		if newest := TokensOf(tail[starts[len(starts)-1]:]); cut.Recent > max(budget, newest) {
			t.Fatalf("%d tokens stay, the budget is %d and the newest turn %d", cut.Recent, budget, newest)
		}
	})
}

// A view that its system prompt fills is not compacted: no summary would make room.
func TestNothingToPlan(t *testing.T) {
	t.Parallel()
	p := Policies["token_budget"]
	for name, c := range map[string]struct {
		tail  []sessions.Event
		fixed int
		want  error
	}{
		"empty":                    {nil, 100, ErrAllRecent},
		"empty, a huge prompt":     {nil, 90000, ErrAllRecent},
		"one turn":                 {talk(1, 50000), 100, ErrAllRecent},
		"many turns":               {talk(9, 9000), 100, nil},
		"prompt leaves one token":  {talk(9, 9000), seed.Target() - budgetSlack - 1, nil},
		"prompt leaves no token":   {talk(9, 9000), seed.Target() - budgetSlack, ErrSystemDominates},
		"prompt larger than all":   {talk(9, 9000), 500000, ErrSystemDominates},
		"one turn, a huge prompt":  {talk(1, 10), 90000, ErrSystemDominates},
		"one message and no reply": {talk(1, 10)[:1], 100, ErrAllRecent},
	} {
		if _, err := p.Plan(seed, c.tail, c.fixed, 0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	p := Policies["token_budget"]
	for name, c := range map[string]struct {
		before, after, source, summary int
		ok                             bool
	}{
		"good":                 {80000, 32000, 60000, 1200, true},
		"frees exactly 10 %":   {80000, 72000, 60000, 1200, true},
		"frees less than 10 %": {80000, 72001, 60000, 1200, false},
		"frees less than 512":  {3000, 2500, 1200, 100, false},
		"grows":                {80000, 90000, 60000, 1200, false},
		"summary as long":      {80000, 60000, 10000, 8000, false},
	} {
		if err := p.Progress(c.before, c.after, c.source, c.summary); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
