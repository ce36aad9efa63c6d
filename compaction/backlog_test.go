package compaction

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// backlog draws the backlog of an import, an erasure or a smaller window: up to 1.4 million tokens of turns, with a
// largest event.
func backlog(t *rapid.T, most int) []sessions.Event {
	total := rapid.IntRange(0, 1_400_000).Draw(t, "backlog")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	var out []sessions.Event
	add := func(e sessions.Event) {
		e.Tokens = 1 + rng.IntN(most)
		total -= e.Tokens + tokens.MessageOverhead
		out = append(out, e)
	}
	for total > 0 && len(out) < 18_000 {
		add(sessions.Event{Role: sessions.RoleUser})
		if rng.IntN(8) == 0 {
			add(sessions.Event{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "a"}}})
			add(sessions.Event{Role: sessions.RoleTool, ToolCallID: "a", ToolName: "look"})
		}
		add(sessions.Event{Role: sessions.RoleAssistant})
	}
	return out
}

// P92: from any backlog, in any window and by any policy, the context ends under its threshold. Each attempt commits,
// they are as many as the parts, and no part is longer than half of the window or one turn.
func TestBacklogIsWorkedOff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, w := policies().Draw(t, "policy"), smallWindows().Draw(t, "window")
		if rapid.Bool().Draw(t, "default window") {
			w = seed
		}
		c := converse(p, w)
		events := backlog(t, max(2, w.Trigger()/60)) // the part that stays raw by count fits
		c.say(events...)
		wordy := rapid.Float64Range(0.01, 1).Draw(t, "wordy")
		c.summary = func(source int, cut Cut) int { // as the engine bounds it
			return max(1, min(int(wordy*float64(source)), p.MostSummary(source), p.LongestSummary(w, c.s, cut)))
		}
		tokens, parts := p.Backlog(w, c.s)
		attempts := 0
		for c.p.Decide(c.w, c.s).Compact {
			before := len(c.cuts)
			c.upkeep()
			attempts++
			if len(c.cuts) == before {
				if cut, err := p.Plan(w, c.s); err == nil && cut.Source > 2*minFreed {
					t.Fatalf("attempt %d of %s changed nothing: %s", attempts, p.Name, c.s.Session.CompactError)
				}
				break
			}
			if cut := c.cuts[before]; p.Segment == 0 && cut.Source > max(leastPart, w.Context/2) && len(TurnStarts(events[:cut.Index])) > 1 {
				t.Fatalf("a part of %d tokens in a window of %d", cut.Source, w.Context)
			}
			events = events[c.cuts[before].Index:]
			if attempts > 2*parts+3 {
				t.Fatalf("%d attempts of %s at a backlog of %d tokens in %d parts", attempts, p.Name, tokens, parts)
			}
		}
		if p.Tokens && c.s.Tokens >= w.Trigger() {
			t.Fatalf("%s ends with %d tokens after %d attempts, the threshold is %d", p.Name, c.s.Tokens, attempts, w.Trigger())
		}
		if need := c.p.Decide(c.w, c.s); need.Hard || need.Forced {
			t.Fatalf("%s ends with %+v at %d tokens of %+v", p.Name, need, c.s.Tokens, w)
		}
	})
}

// A smaller window than the conversation was held in: 58,000 raw tokens and a threshold of 5,000.
func TestBacklogOfASmallerWindow(t *testing.T) {
	t.Parallel()
	w := Window{Context: 8192, Reserve: 1500, Threshold: 5000, Share: 0.5, FlushRatio: 0.9, Summary: 1200}
	for name, p := range Policies {
		c := converse(p, w)
		c.say(compactiontest.Talk(400, 67)...)
		for range 1000 {
			if !c.upkeep() {
				break
			}
		}
		if need := p.Decide(w, c.s); need.Compact || c.s.Tokens >= w.Usable() {
			t.Errorf("%s ends at %d tokens with %+v: %s", name, c.s.Tokens, need, c.s.Session.CompactError)
		}
	}
}

// Attempts that fail take ever shorter parts, so that a model which can't summarize them does not use up the day.
func TestPartsShrinkWithFailures(t *testing.T) {
	t.Parallel()
	s := State{Tail: compactiontest.Talk(9000, 70), Now: time.Now()}
	last := seed.Context
	for failures := range 8 {
		s.Session.CompactFailures = failures
		cut, partial, err := Policies["token_budget"].Part(seed, s)
		if err != nil || !partial || cut.Source > max(leastPart, seed.Context/2>>min(failures, maxHalvings)) || cut.Source > last {
			t.Errorf("after %d failures a part of %d tokens (partial: %v, %v)", failures, cut.Source, partial, err)
		}
		last = cut.Source
	}
	if last > 5000 {
		t.Errorf("after eight failures an attempt still takes %d tokens", last)
	}
}

// A part never ends between a tool call and its result, though that comes after the next question.
func TestPartsKeepExchangesWhole(t *testing.T) {
	t.Parallel()
	tail := compactiontest.Talk(9000, 70)
	at := len(tail) / 40
	tail[at*2-1].ToolCalls = []sessions.ToolCall{{ID: "late"}}
	tail[at*20+1] = sessions.Event{Seq: tail[at*20+1].Seq, Role: sessions.RoleTool, ToolCallID: "late", Tokens: 70}
	s := State{Tail: tail}
	for len(s.Tail) > 0 {
		cut, _, err := Policies["token_budget"].Part(seed, s)
		if err != nil {
			break
		}
		for _, x := range pairCalls(s.Tail) {
			if x.result != pending && x.call < cut.Index && cut.Index <= x.result {
				t.Fatalf("a part of %d events ends between call %d and result %d", cut.Index, x.call, x.result)
			}
		}
		s.Tail = s.Tail[cut.Index:]
	}
}

// No model is asked for what frees nothing: a few short turns next to a long summary, or turns shorter than any summary.
func TestWorthOfACompaction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy       string
		summary, old int // tokens of the continued summary, and of the events that would leave
		want         error
	}{
		"few turns next to a summary":  {"token_budget", 1500, 100, ErrTooLittle},
		"many turns next to a summary": {"token_budget", 1500, 2000, nil},
		"a first summary":              {"token_budget", 0, 2000, nil},
		"short turns by count":         {"archive", 0, 60, ErrTooLittle},
		"turns by count":               {"archive", 0, 200, nil},
	} {
		p := Policies[c.policy]
		if err := p.Worth(seed, State{SummaryTokens: c.summary}, Cut{Source: c.old, Whole: c.old}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
