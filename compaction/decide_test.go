package compaction

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

func TestDecideBySize(t *testing.T) {
	t.Parallel()
	p, now := Policies["token_budget"], time.Now()
	fresh := sessions.Session{FlushEpoch: -1}
	flushed := sessions.Session{FlushEpoch: 0}
	compact := func(trigger sessions.Trigger) Need { return Need{Compact: true, Trigger: trigger} }
	overflow := Need{Compact: true, Hard: true, Trigger: TriggerOverflow}
	for name, c := range map[string]struct {
		s      sessions.Session
		tokens int
		want   Need
	}{
		"small":                         {fresh, 71999, Need{}},
		"a count that can't be":         {fresh, -5, Need{}},
		"at 90 %":                       {fresh, 72000, Need{Flush: true}},
		"at 90 %, flushed in the cycle": {flushed, 72000, Need{}},
		// P33
		"T - 1":                        {flushed, 79999, Need{}},
		"T":                            {flushed, 80000, compact(TriggerThreshold)},
		"T + 1":                        {flushed, 80001, compact(TriggerThreshold)},
		"one message jumped over both": {fresh, 95000, Need{Flush: true, Compact: true, Trigger: TriggerThreshold}},
		"next cycle":                   {sessions.Session{FlushEpoch: 0, CompactionCount: 1}, 72000, Need{Flush: true}},
		"overflow":                     {flushed, 108000, overflow},
		"resting after no progress":    {sessions.Session{RearmTokens: 100000}, 90000, Need{}},
		"rested":                       {sessions.Session{RearmTokens: 90000}, 90000, compact(TriggerThreshold)},
		"resting, but it overflows":    {sessions.Session{RearmTokens: 200000}, 110000, overflow},
		"retry later":                  {sessions.Session{CompactRetryAt: now.Add(time.Minute)}, 90000, Need{}},
		"overflow, retry later":        {sessions.Session{CompactRetryAt: now.Add(time.Minute)}, 110000, Need{Hard: true}},
		"retry now":                    {sessions.Session{CompactRetryAt: now}, 90000, compact(TriggerThreshold)},
		"flush failed three times":     {sessions.Session{FlushEpoch: -1, FlushFailures: 3}, 73000, Need{}},
		"flush failed twice":           {sessions.Session{FlushEpoch: -1, FlushFailures: 2}, 73000, Need{Flush: true}},
	} {
		if got := p.Decide(seed, State{Session: c.s, Tokens: c.tokens, Now: now}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDecideByCount(t *testing.T) {
	t.Parallel()
	now := time.Now()
	young := sessions.Session{CreatedAt: now.Add(-time.Minute)}
	old := sessions.Session{CreatedAt: now.Add(-time.Hour), CompactedAt: now.Add(-900 * time.Second)}
	future := sessions.Session{CompactedAt: now.AddDate(1, 0, 0)}
	failed := sessions.Session{CompactRetryAt: now.Add(time.Minute)}
	idle := sessions.Session{CompactError: "too long", RearmTokens: 5000}
	compact := func(trigger sessions.Trigger) Need {
		return Need{Compact: true, Trigger: trigger, Forced: trigger == TriggerHardLimit}
	}
	for name, c := range map[string]struct {
		policy string
		s      sessions.Session
		events int
		want   Need
	}{
		"S0: a tail alone":                        {"sliding_window", old, 40, Need{}},
		"S0: one turn less than a window":         {"sliding_window", young, 50, Need{}},
		"S0: a window":                            {"sliding_window", young, 52, compact(TriggerWindow)},
		"S0: a window, resting by size":           {"sliding_window", sessions.Session{RearmTokens: 90000}, 52, compact(TriggerWindow)},
		"S0: a window, after one that was no use": {"sliding_window", idle, 52, Need{}},
		"S0: a window, backing off":               {"sliding_window", failed, 52, Need{}},
		"S0: hard limit":                          {"sliding_window", young, 70, compact(TriggerHardLimit)},
		"S0: hard limit, backing off":             {"sliding_window", failed, 70, compact(TriggerHardLimit)},
		"S0: hard limit, after one of no use":     {"sliding_window", idle, 70, compact(TriggerHardLimit)},
		"S0: cooled, too little":                  {"sliding_window", old, 44, Need{}},
		"S0: cooled":                              {"sliding_window", old, 46, compact(TriggerCooldown)},
		"S0: not cooled since it began":           {"sliding_window", young, 46, Need{}},
		// P36
		"S0: the clock went back":  {"sliding_window", future, 46, Need{}},
		"S0: and a window is full": {"sliding_window", future, 52, compact(TriggerWindow)},
		"S1: as many as may be":    {"archive", young, 30, Need{}},
		"S1: one turn more":        {"archive", young, 32, compact(TriggerMessages)},
		"S1: more than is shown":   {"archive", failed, 62, compact(TriggerHardLimit)},
		"S2: six turns":            {"turns", young, 12, Need{}},
		"S2: seven turns":          {"turns", young, 14, compact(TriggerTurns)},
		"S2: the seventh waits":    {"turns", young, 13, Need{}},
		"S4: any number":           {"token_budget", old, 900, Need{}},
	} {
		tail := compactiontest.Talk(c.events/2+1, 10)[:c.events]
		if got := Policies[c.policy].Decide(seed, State{Session: c.s, Tail: tail, Tokens: 2000, Now: now}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	narrow := Policies["sliding_window"]
	narrow.Window = 4
	if got := narrow.Decide(seed, State{Session: old, Tail: compactiontest.Talk(21, 10), Now: now}); got.Trigger != TriggerCooldown {
		t.Errorf("half of a window of 4 is one turn: %+v", got)
	}
}

// conversation plays a policy with a model of a given mood, without storage: what bot does with Decide, Plan and
// Progress, in few lines.
type conversation struct {
	p     Policy
	w     Window
	s     State
	mood  string // ok, garbage, error
	calls int    // calls of the summariser
	cuts  []Cut
	seq   int64
	text  int              // tokens of the summaries
	first []sessions.Event // the part that the last cut left raw
	// summary is the length of a summary for a source in tokens; nil: a quarter of it.
	summary func(source int, cut Cut) int
}

func converse(p Policy, w Window) *conversation {
	now := time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC)
	return &conversation{p: p, w: w, mood: "ok", s: State{Fixed: 800, Now: now, Session: sessions.Session{FlushEpoch: -1, CreatedAt: now, CalibrationFactor: 1}}}
}

func (c *conversation) say(events ...sessions.Event) {
	for _, e := range events {
		c.seq++
		e.Seq = c.seq
		c.s.Tail = append(c.s.Tail, e)
	}
	c.size()
}

func (c *conversation) size() { c.s.Tokens = c.s.Fixed + c.s.SummaryTokens + TokensOf(c.s.Tail) }

// upkeep is one decision and what follows from it; it reports whether the view changed.
func (c *conversation) upkeep() bool {
	need := c.p.Decide(c.w, c.s)
	if !need.Compact {
		return false
	}
	if c.p.Mode == OffloadThenCompact {
		shown, freed := c.p.Offload(c.w, c.s, func(s string) int { return len(s) / 4 })
		for _, one := range shown {
			e := &c.s.Tail[one.Seq-c.s.Tail[0].Seq]
			e.Content, e.Tokens, e.Blob = one.Text, one.Tokens, one.Blob
		}
		c.size()
		if !c.p.StillDue(c.w, c.s.Tokens, freed) {
			return len(shown) > 0
		}
	}
	cut, partial, err := c.p.Part(c.w, c.s)
	if err != nil {
		c.s.Session.RearmTokens = c.p.RearmAfter(c.w, c.s.Tokens, false)
		return false
	}
	c.calls++
	c.summarize(cut, partial)
	return c.s.Session.CompactError == ""
}

// summarize has the model summarize a cut, and commits it or not.
func (c *conversation) summarize(cut Cut, partial bool) {
	s, before := &c.s.Session, c.s.Tokens
	source, standing := cut.Source, 0
	if c.p.Rolling {
		source, standing = source+c.text, c.text
	}
	summary := min(source/4, 800)
	if c.summary != nil {
		summary = c.summary(source, cut)
	}
	switch c.mood {
	case "error":
		s.CompactError, s.CompactFailures = "model error", s.CompactFailures+1
		s.CompactRetryAt = c.s.Now.Add(time.Minute << min(s.CompactFailures, 5))
		return
	case "garbage":
		summary = source
	}
	after := before - cut.Source - standing + summary
	if err := c.p.Progress(before, after, source, summary); err != nil {
		s.CompactError, s.RearmTokens = err.Error(), c.p.RearmAfter(c.w, before, false)
		return
	}
	c.text += summary - standing
	if !c.p.Rolling && c.text > c.p.RollUpTokens {
		c.text = c.p.RollUpTokens / 2
	}
	c.s.Tail = c.s.Tail[cut.Index:]
	c.first = c.s.Tail
	c.s.SummaryTokens = c.text
	c.size()
	s.CompactError, s.CompactFailures, s.CompactRetryAt = "", 0, time.Time{}
	s.CompactionCount++
	s.CompactedAt, s.RearmTokens = c.s.Now, c.p.RearmAfter(c.w, c.s.Tokens, true)
	if partial {
		s.RearmTokens = 0
	}
	s.CompactedSeq = cut.Through
	c.cuts = append(c.cuts, cut)
}

// settle is upkeep until there is nothing more to do.
func (c *conversation) settle(t *rapid.T) {
	for range 100 {
		if !c.upkeep() {
			return
		}
	}
	t.Fatalf("%s still compacts after 100 rounds: %d events, %d tokens", c.p.Name, len(c.s.Tail), c.s.Tokens)
}

// P9: with A = 4 and B = 3 the seventh turn sets off a segment of the turns 1 to 3 and the tenth one of 4 to 6.
func TestTurnsByTheTable(t *testing.T) {
	t.Parallel()
	c := converse(Policies["turns"], seed)
	want := map[int]string{7: "1..3", 10: "4..6"}
	for k := 1; k <= 10; k++ {
		c.say(compactiontest.Talk(1, 30)...)
		summarized := ""
		for c.upkeep() {
			summarized += fmt.Sprintf("%d..%d", c.s.Session.CompactedSeq/2-2, c.s.Session.CompactedSeq/2)
		}
		if summarized != want[k] {
			t.Errorf("turn %d: summarized %q, want %q", k, summarized, want[k])
		}
		if raw := len(c.s.Tail) / 2; k >= 7 && raw < 4 {
			t.Errorf("turn %d: %d turns are raw, want at least 4", k, raw)
		}
	}
}

// P9, P10: a backlog is summarized in segments of exactly B turns until fewer than A+B turns are raw.
func TestTurnsWithABacklog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Policies["turns"]
		p.TailTurns, p.Segment = rapid.IntRange(1, 6).Draw(t, "A"), rapid.IntRange(1, 5).Draw(t, "B")
		c := converse(p, seed)
		turns := rapid.IntRange(1, 24).Draw(t, "turns")
		for range turns {
			c.say(drawTurn(t, 1, 300)...)
		}
		all := c.s.Tail
		c.settle(t)
		from := 0
		for _, cut := range c.cuts {
			if n := len(TurnStarts(all[from : from+cut.Index])); n != p.Segment {
				t.Fatalf("a segment of %d turns, want %d", n, p.Segment)
			}
			from += cut.Index
		}
		if raw, want := turns-len(c.cuts)*p.Segment, p.TailTurns+p.Segment; raw >= want || len(c.cuts) > 0 && raw < p.TailTurns {
			t.Fatalf("%d of %d turns are raw after %d segments, want less than %d", raw, turns, len(c.cuts), want)
		}
	})
}

// P6, P7: a session with no more than the tail is not summarized, and a full window never outlasts the upkeep after its
// turn.
func TestSlidingWindowIsPrompt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Policies["sliding_window"]
		c := converse(p, seed)
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			c.say(drawTurn(t, 1, 100)...)
			c.s.Now = c.s.Now.Add(time.Duration(rapid.IntRange(0, 1200).Draw(t, "seconds")) * time.Second)
			if n := c.p.Decide(c.w, c.s); n.Compact && len(c.s.Tail) <= p.TailMessages {
				t.Fatalf("%s with %d events, all of the tail", n.Trigger, len(c.s.Tail))
			}
			c.settle(t)
			if cut, err := p.Plan(c.w, c.s); err == nil && cut.Index >= p.Window {
				t.Fatalf("%d events may leave after the upkeep, the window is %d", cut.Index, p.Window)
			}
		}
	})
}

// P5, P27: under any policy and any failures, summaries and raw events are the whole log, in order. The cursor only
// moves forward, and only with a summary. A trigger finds something to do or one of the reasons, and a new turn finds
// the promised tail.
func TestPoliciesLoseNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := converse(policies().Draw(t, "policy"), smallWindows().Draw(t, "window"))
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			c.mood = rapid.SampledFrom([]string{"ok", "ok", "ok", "garbage", "error"}).Draw(t, "mood")
			c.s.Now = c.s.Now.Add(time.Duration(rapid.IntRange(0, 1200).Draw(t, "seconds")) * time.Second)
			c.say(drawTurn(t, 1, 1500)...)
			need, summarized := c.p.Decide(c.w, c.s), len(c.cuts)
			cursor := c.s.Session.CompactedSeq
			if _, err := c.p.Plan(c.w, c.s); need.Compact && err != nil && !errors.Is(err, ErrAllRecent) && !errors.Is(err, ErrSystemDominates) {
				t.Fatalf("%s fired, and the plan says %v", need.Trigger, err)
			}
			c.settle(t)
			if len(c.cuts) == summarized && c.s.Session.CompactedSeq != cursor {
				t.Fatal("the cursor moved without a summary")
			}
			if len(c.cuts) > summarized && (c.p.TailShare == 0 && len(c.first) < c.p.TailMessages || len(TurnStarts(c.first)) < c.p.TailTurns) {
				t.Fatalf("%d events stay after a compaction by %s", len(c.first), c.p.Name)
			}
		}
		next := int64(1)
		for _, cut := range c.cuts {
			next += int64(cut.Index)
			if cut.Through != next-1 {
				t.Fatalf("a summary ends at event %d, want %d", cut.Through, next-1)
			}
		}
		for _, e := range c.s.Tail {
			if e.Seq != next {
				t.Fatalf("event %d is raw, want %d", e.Seq, next)
			}
			next++
		}
		if next != c.seq+1 {
			t.Fatalf("the view ends before event %d of %d", next, c.seq)
		}
	})
}

// smallWindows draws windows in which conversations of a few dozen turns run into every trigger.
func smallWindows() *rapid.Generator[Window] {
	return rapid.Custom(func(t *rapid.T) Window {
		ctx := rapid.IntRange(8000, 60000).Draw(t, "context")
		return Window{
			Context: ctx, Reserve: ctx / 5, Threshold: rapid.IntRange(6000, 50000).Draw(t, "threshold"),
			Share: rapid.Float64Range(0.3, 1).Draw(t, "share"), FlushRatio: 0.9, Summary: 800,
		}
	})
}

// P29: when nothing new was said, deciding again and again asks the model once at most, or once for each part of what leaves.
func TestNoNewEventsCallNoModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := converse(policies().Draw(t, "policy"), smallWindows().Draw(t, "window"))
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			c.say(drawTurn(t, 1, 800)...)
			c.settle(t)
		}
		c.mood = rapid.SampledFrom([]string{"ok", "garbage", "error"}).Draw(t, "mood")
		c.say(drawTurn(t, 1, 800)...)
		need, most := c.p.Decide(c.w, c.s), 1
		if _, partial, err := c.p.Part(c.w, c.s); err == nil && partial {
			_, parts := c.p.Backlog(c.w, c.s)
			most = parts + 1 // parts end with turns
		}
		c.calls = 0
		for range 20 {
			if n := c.p.Decide(c.w, c.s); n.Forced || n.Hard {
				return // before each answer these may try once more
			}
			c.upkeep()
		}
		if c.calls > most {
			t.Fatalf("%s asked the model %d times after one turn, want %d at most (%+v)", c.p.Name, c.calls, most, need)
		}
	})
}

// P30: a model that answers is asked as often as the policy's step says, and no more.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policies().Draw(t, "policy")
		c := converse(p, seed)
		began := c.s.Now
		turns, appended := rapid.IntRange(1, 80).Draw(t, "turns"), 0
		for range turns {
			c.s.Now = c.s.Now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "seconds")) * time.Second)
			before := c.s.Tokens
			c.say(drawTurn(t, 1, 2000)...)
			appended += c.s.Tokens - before
			c.settle(t)
		}
		most := 1 + appended/seed.MinBatch()
		switch {
		case p.Window > 0:
			if most = int(c.seq)/p.Window + 1; p.Cooldown > 0 {
				most += int(c.s.Now.Sub(began) / p.Cooldown)
			}
		case p.Segment > 0:
			most = turns / p.Segment
		case p.MaxMessages > 0:
			most = 1 + int(c.seq)/max(1, p.MaxMessages-p.TailMessages-longestTurn)
		}
		if c.calls > most {
			t.Fatalf("%s asked %d times in %d turns of %d tokens, want at most %d", p.Name, c.calls, turns, appended, most)
		}
	})
}

// P36: a clock that jumps makes one compaction at the most, and the next by count sets it right.
func TestAClockThatJumps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := converse(Policies["sliding_window"], seed)
		for range 40 {
			years := rapid.SampledFrom([]int{-1, 0, 0, 1}).Draw(t, "years")
			c.s.Now = c.s.Now.AddDate(years, 0, 0).Add(time.Second)
			c.say(drawTurn(t, 1, 50)...)
			c.calls = 0
			c.settle(t)
			if c.calls > 1 {
				t.Fatalf("%d compactions after one turn", c.calls)
			}
		}
		c.s.Now = c.s.Session.CompactedAt.Add(c.p.Cooldown)
		c.say(compactiontest.Talk(4, 10)...)
		cut, err := c.p.Plan(c.w, c.s)
		if n := c.p.Decide(c.w, c.s); err == nil && cut.Index >= c.p.LeastCooldown() && !n.Compact {
			t.Fatalf("%d events may leave, it has cooled, and nothing is due", cut.Index)
		}
	})
}

// P33, P34: windows and counts that make no sense decide something, cut nothing they may not, and stop nothing.
func TestNonsenseDoesNotPanic(t *testing.T) {
	t.Parallel()
	odd := rapid.OneOf(rapid.SampledFrom([]int{math.MinInt32, -1, 0, 1, 500, 501, 1 << 40, -1 << 40}), rapid.IntRange(-1000, 200000))
	part := rapid.OneOf(rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1, -1, 2}), rapid.Float64())
	rapid.Check(t, func(t *rapid.T) {
		p := policies().Draw(t, "policy")
		p.TailShare, p.OffloadAt, p.CachePrice = part.Draw(t, "share"), part.Draw(t, "at"), part.Draw(t, "price")
		p.TailMessages, p.Segment, p.TailTurns = odd.Draw(t, "messages"), odd.Draw(t, "segment"), odd.Draw(t, "turns")
		w := Window{
			Context: odd.Draw(t, "context"), Reserve: odd.Draw(t, "reserve"), Threshold: odd.Draw(t, "threshold"),
			Share: part.Draw(t, "history"), FlushRatio: part.Draw(t, "ratio"), Summary: odd.Draw(t, "summary"),
		}
		s := State{
			Tail: logs().Draw(t, "tail"), Fixed: odd.Draw(t, "fixed"), SummaryTokens: odd.Draw(t, "standing"), Tokens: odd.Draw(t, "tokens"),
			Session: sessions.Session{CalibrationFactor: part.Draw(t, "factor"), RearmTokens: odd.Draw(t, "rearm")},
		}
		p.Decide(w, s)
		p.Offload(w, s, func(s string) int { return len(s) })
		p.Prune(s.Tail, func(s string) int { return len(s) })
		if cut, err := p.Plan(w, s); err == nil && (cut.Index <= 0 || cut.Index >= len(s.Tail) || s.Tail[cut.Index].Role != sessions.RoleUser) {
			t.Fatalf("cut %+v of %d events", cut, len(s.Tail))
		}
	})
	if got := tokens.Calibrate(1.2, -50, 100); got != 1.2 {
		t.Errorf("a provider that counts %d tokens moved the factor to %v", -50, got)
	}
}

func TestRearmAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		gained bool
		want   int
	}{
		"by size, a gain":      {"token_budget", true, 42000},
		"by size, none":        {"token_budget", false, 50000},
		"by count, a gain":     {"turns", true, 0},
		"by count, none":       {"turns", false, 31000},
		"by both, a gain":      {"balanced", true, 42000},
		"by offloading, gains": {"offload", true, 42000},
	} {
		if got := Policies[c.policy].RearmAfter(seed, 30000, c.gained); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
