package compaction

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

var seed = Window{Context: 128000, Reserve: 20000, Threshold: 80000, Share: 0.5, FlushRatio: 0.9, Summary: 1200}

func TestBudgetsOfTheDefaults(t *testing.T) {
	t.Parallel()
	for name, got := range map[string][2]int{
		"usable":                     {seed.Usable(), 108000},
		"max":                        {seed.MaxTokens(), 64000},
		"trigger":                    {seed.Trigger(), 80000},
		"flush":                      {seed.FlushAt(), 72000},
		"target":                     {seed.Target(), 64000},
		"target of a share of 0.46":  {shared(0.46).Target(), 58880},
		"target of a share of 0.57":  {shared(0.57).Target(), 64000},
		"rearm after a gain":         {seed.RearmAfter(30000, true), 42000},
		"rearm after none":           {seed.RearmAfter(80000, false), 100000},
		"counted twice as carefully": {seed.Counted(2).Usable(), 54000},
		"counted as it is":           {seed.Counted(math.NaN()).Usable(), 108000},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %d, want %d", name, got[0], got[1])
		}
	}
}

// shared is the window of the defaults with another share.
func shared(share float64) Window {
	w := seed
	w.Share = share
	return w
}

func windows() *rapid.Generator[Window] {
	return rapid.Custom(func(t *rapid.T) Window {
		ctx := rapid.IntRange(3000, 2_000_000).Draw(t, "context")
		return Window{
			Context: ctx, Reserve: rapid.IntRange(0, ctx-1500).Draw(t, "reserve"), Threshold: rapid.IntRange(1500, 3_000_000).Draw(t, "threshold"),
			Share: rapid.Float64Range((LeastBudget+1)/float64(ctx), 1).Draw(t, "share"), FlushRatio: rapid.Float64Range(0.1, 0.99).Draw(t, "ratio"), Summary: 1200,
		}
	})
}

// P26, P35: maxTokens is the smaller of share and usable, and grows with each; no budget grows with the reserve. The
// flush comes before the compaction, which aims below its trigger.
func TestBudgetLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := windows().Draw(t, "window")
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		if want := min(int(math.Floor(float64(w.Context)*w.Share)), w.Context-w.Reserve); w.MaxTokens() != want {
			t.Fatalf("max %d of %+v, want %d", w.MaxTokens(), w, want)
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
		more = w
		more.Context += rapid.IntRange(0, 1<<20).Draw(t, "wider")
		more.Share = rapid.Float64Range(w.Share, 1).Draw(t, "larger share")
		if more.MaxTokens() < w.MaxTokens() || more.Target() < w.Target() {
			t.Fatalf("a larger window or share lowered what may stay: %+v", more)
		}
		if enough, idle := w.IdleShare(); idle {
			less := w
			less.Share = enough
			if less.Target() != w.Target() {
				t.Fatalf("a share of %v keeps %d tokens, and %v was said to keep as much as %v: %d", enough, less.Target(), enough, w.Share, w.Target())
			}
		}
	})
}

// P34: budgets of windows as large as 2^40 tokens are what they are, not what overflowed.
func TestHugeWindows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		huge := rapid.IntRange(1<<30, 1<<40)
		w := Window{Context: huge.Draw(t, "context"), Threshold: huge.Draw(t, "threshold"), Share: rapid.Float64Range(0.5, 1).Draw(t, "share"), FlushRatio: 0.9, Summary: 1200}
		used := huge.Draw(t, "used")
		for name, n := range map[string]int{
			"max": w.MaxTokens(), "trigger": w.Trigger(), "flush": w.FlushAt(), "target": w.Target(), "batch": w.MinBatch(),
			"rearm": w.RearmAfter(used, true) - used, "counted": w.Counted(0.5).Trigger(),
		} {
			if n <= 0 || n > 1<<41 {
				t.Fatalf("%s is %d in %+v", name, n, w)
			}
		}
		if got := seed.Available(used); got >= 0 {
			t.Fatalf("%d tokens are available next to %d", got, used)
		}
	})
}

// P33: what can't work is refused with the setting, its figure and what it is held against.
func TestImpossibleSettingsAreRefused(t *testing.T) {
	t.Parallel()
	type change func(*Window, *Policy)
	on := func(c func(*Window)) change { return func(w *Window, _ *Policy) { c(w) } }
	of := func(policy string, c func(*Policy)) change {
		return func(_ *Window, p *Policy) { *p = Policies[policy]; c(p) }
	}
	for name, c := range map[string]struct {
		change change
		key    string
		says   string
	}{
		"nothing but reserve": {on(func(w *Window) { w.Context, w.Reserve = 20001, 20000 }), "reserve_tokens", "reserve_tokens is 20000, want at most 18572: a conversation needs 1429 of context_window (20001)"},
		"window of a few":     {on(func(w *Window) { w.Context, w.Reserve = 900, 100 }), "context_window", "at least 1100, for reserve_tokens (100)"},
		"threshold of a few":  {on(func(w *Window) { w.Threshold = 100 }), "auto_compact_threshold", "auto_compact_threshold is 100, want at least 1429"},
		"threshold too small": {on(func(w *Window) { w.Threshold = 1428 }), "auto_compact_threshold", "want at least 1429"},
		"share of a few":      {on(func(w *Window) { w.Share = 0.001 }), "max_history_share", "want at least 0.0079, which is 1000 tokens of context_window (128000)"},
		"no window":           {on(func(w *Window) { w.Context = 0 }), "context_window", "context_window is 0, want more than 0"},
		"reserve is all":      {on(func(w *Window) { w.Reserve = w.Context }), "reserve_tokens", "128000"},
		"reserve is more":     {on(func(w *Window) { w.Reserve = w.Context + 1 }), "reserve_tokens", "128001"},
		"negative reserve":    {on(func(w *Window) { w.Reserve = -1 }), "reserve_tokens", "-1"},
		"no threshold":        {on(func(w *Window) { w.Threshold = 0 }), "auto_compact_threshold", "0"},
		"share 0":             {on(func(w *Window) { w.Share = 0 }), "max_history_share", "0"},
		"share above 1":       {on(func(w *Window) { w.Share = 1.01 }), "max_history_share", "1.01"},
		"share NaN":           {on(func(w *Window) { w.Share = math.NaN() }), "max_history_share", "NaN"},
		"share infinite":      {on(func(w *Window) { w.Share = math.Inf(1) }), "max_history_share", "Inf"},
		"flush at trigger":    {on(func(w *Window) { w.FlushRatio = 1 }), "flush_ratio", "1"},
		"flush ratio is NaN":  {on(func(w *Window) { w.FlushRatio = math.NaN() }), "flush_ratio", "NaN"},

		"tail above view":        {of("sliding_window", func(p *Policy) { p.TailMessages = 80 }), "tail_messages", "tail_messages is 80, want less than context_size (75)"},
		"tail is the view":       {of("sliding_window", func(p *Policy) { p.TailMessages = 75 }), "tail_messages", "75"},
		"tail above messages":    {of("archive", func(p *Policy) { p.TailMessages = 30 }), "tail_messages", "less than max_messages (30)"},
		"negative tail":          {of("sliding_window", func(p *Policy) { p.TailMessages = -1 }), "tail_messages", "-1"},
		"negative view":          {of("sliding_window", func(p *Policy) { p.ContextSize = -1 }), "context_size", "-1"},
		"negative batch":         {of("sliding_window", func(p *Policy) { p.Window = -12 }), "window_messages", "-12"},
		"negative limit":         {of("sliding_window", func(p *Policy) { p.HardLimit = -1 }), "hard_limit", "-1"},
		"negative cooldown":      {of("sliding_window", func(p *Policy) { p.Cooldown = -time.Second }), "cooldown", "-1s"},
		"negative messages":      {of("archive", func(p *Policy) { p.MaxMessages = -1 }), "max_messages", "-1"},
		"no full turns":          {of("turns", func(p *Policy) { p.TailTurns = 0 }), "full_context_turns", "at least 1"},
		"negative full turns":    {of("turns", func(p *Policy) { p.TailTurns = -1 }), "full_context_turns", "-1"},
		"no cached turns":        {of("turns", func(p *Policy) { p.Segment = 0 }), "cached_context_turns", "at least 1"},
		"tail share above 1":     {of("balanced", func(p *Policy) { p.TailShare = 1.5 }), "tail_share", "1.5"},
		"tail share NaN":         {of("balanced", func(p *Policy) { p.TailShare = math.NaN() }), "tail_share", "NaN"},
		"negative tail turns":    {of("token_budget", func(p *Policy) { p.TailTurns = -1 }), "tail_turns", "-1"},
		"offload at NaN":         {of("offload", func(p *Policy) { p.OffloadAt = math.NaN() }), "offload_at", "NaN"},
		"offload nothing":        {of("offload", func(p *Policy) { p.OffloadOver = 0 }), "offload_over", "more than 0"},
		"offload negative":       {of("offload", func(p *Policy) { p.OffloadOver = -5 }), "offload_over", "-5"},
		"offload enough":         {of("offload", func(p *Policy) { p.OffloadEnough = -1 }), "offload_enough", "-1"},
		"price above 1":          {of("balanced", func(p *Policy) { p.CachePrice = 1.1 }), "cache_price", "1.1"},
		"negative price":         {of("balanced", func(p *Policy) { p.CachePrice = -0.1 }), "cache_price", "-0.1"},
		"roll-up above window":   {of("archive", func(p *Policy) { p.RollUpTokens = 200000 }), "roll_up_tokens", "108000"},
		"negative roll-up":       {of("archive", func(p *Policy) { p.RollUpTokens = -1 }), "roll_up_tokens", "-1"},
		"one segment":            {of("archive", func(p *Policy) { p.RollUpSegments = 1 }), "roll_up_segments", "at least 2"},
		"unknown mode":           {of("archive", func(p *Policy) { p.Mode = "prune" }), "mode", "prune_only"},
		"nothing sets it off":    {of("archive", func(p *Policy) { p.MaxMessages, p.ContextSize = 0, 0 }), "policy", "archive"},
		"a window, not a policy": {of("archive", func(p *Policy) { p.TailMessages = 60 }), "tail_messages", "context_size (60)"},
	} {
		w, p := seed, Policies["token_budget"]
		c.change(&w, &p)
		err := p.Validate(w)
		if field, ok := errors.AsType[*FieldError](err); !ok || field.Key != c.key || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want one about %s that says %q", name, err, c.key, c.says)
		}
	}
}

// All faults of the window and of the policy are reported at once.
func TestAllFaultsAreReported(t *testing.T) {
	t.Parallel()
	w, p := seed, Policies["balanced"]
	w.Share, p.CachePrice, p.RollUpSegments, p.OffloadAt, p.TailShare = 2, 2, 1, 1.2, 2
	err := p.Validate(w)
	for _, key := range []string{"max_history_share is 2,", "cache_price is 2,", "roll_up_segments is 1,", "offload_at is 1.2,", "tail_share is 2,"} {
		if err == nil || strings.Count(err.Error(), key) != 1 {
			t.Errorf("%v, want one line about %s", err, key)
		}
	}
}

// The least budgets that are taken leave as much as is asked for.
func TestLeastBudgets(t *testing.T) {
	t.Parallel()
	for _, w := range []Window{
		{Context: 128000, Reserve: 20000, Threshold: 1429, Share: 0.5, FlushRatio: 0.9},
		{Context: 21429, Reserve: 20000, Threshold: 80000, Share: 0.5, FlushRatio: 0.9},
		{Context: 128000, Reserve: 20000, Threshold: 80000, Share: 0.0079, FlushRatio: 0.9},
		{Context: 8000, Reserve: 2000, Threshold: 4000, Share: 0.4, FlushRatio: 0.9},
	} {
		if err := w.Validate(); err != nil || w.Trigger() < LeastBudget || w.Target() < LeastBudget {
			t.Errorf("%+v: %v, trigger %d, target %d, want at least %d", w, err, w.Trigger(), w.Target(), LeastBudget)
		}
	}
}

func TestPoliciesAreValid(t *testing.T) {
	t.Parallel()
	for name, p := range Policies {
		for _, mode := range []Mode{SummaryOnly, SummaryPlusPrune, PruneOnly} {
			p.Mode = mode
			if err := p.Validate(seed); err != nil || p.Name != name {
				t.Errorf("%s (%s) in mode %s: %v", name, p.Name, mode, err)
			}
		}
	}
}

// An undo rests only where something is compacted by itself, and only below the size that arms it again.
func TestRestsUntil(t *testing.T) {
	t.Parallel()
	undone := sessions.Session{CompactError: sessions.CompactUndone, RearmTokens: 5000}
	for name, c := range map[string]struct {
		s       Settings
		session sessions.Session
		size    int
		want    int
	}{
		"undone":           {Settings{Enabled: true}, undone, 4000, 5000},
		"grown":            {Settings{Enabled: true}, undone, 5000, 0},
		"disabled":         {Settings{}, undone, 4000, 0},
		"failed, not undo": {Settings{Enabled: true}, sessions.Session{CompactError: "busy", RearmTokens: 5000}, 4000, 0},
	} {
		if got := c.s.RestsUntil(c.session, c.size); got != c.want {
			t.Errorf("%s: it rests until %d, want %d", name, got, c.want)
		}
	}
}
