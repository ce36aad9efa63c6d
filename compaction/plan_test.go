package compaction

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// logs draws a tail of whole turns, as the store holds it.
func logs() *rapid.Generator[[]sessions.Event] {
	return rapid.Custom(func(t *rapid.T) []sessions.Event {
		var out []sessions.Event
		for range rapid.IntRange(0, 12).Draw(t, "turns") {
			out = append(out, drawTurn(t, int64(len(out)+1), 3000)...)
		}
		return out
	})
}

// longestTurn is the most events of a drawn turn.
const longestTurn = 13

// drawTurn is a turn whose events are numbered from seq: questions, perhaps tools in between, an answer.
func drawTurn(t *rapid.T, seq int64, most int) []sessions.Event {
	var out []sessions.Event
	add := func(e sessions.Event) {
		e.Seq, e.Tokens = seq+int64(len(out)), rapid.IntRange(1, most).Draw(t, "tokens")
		out = append(out, e)
	}
	for range rapid.IntRange(1, 3).Draw(t, "asked") {
		add(sessions.Event{Role: sessions.RoleUser})
	}
	for range rapid.IntRange(0, 3).Draw(t, "rounds") {
		// Some providers number calls from 0 in every turn.
		add(sessions.Event{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "a"}, {ID: "b"}}})
		add(sessions.Event{Role: sessions.RoleTool, ToolCallID: "b", ToolName: "look"})
		add(sessions.Event{Role: sessions.RoleTool, ToolCallID: "a", ToolName: "look"})
	}
	add(sessions.Event{Role: sessions.RoleAssistant})
	return out
}

// policies draws any of the policies, in any of its modes.
func policies() *rapid.Generator[Policy] {
	return rapid.Custom(func(t *rapid.T) Policy {
		p := Policies[rapid.SampledFrom(slices.Sorted(maps.Keys(Policies))).Draw(t, "policy")]
		if p.OffloadOver == 0 {
			p.Mode = rapid.SampledFrom([]Mode{SummaryOnly, SummaryPlusPrune, PruneOnly}).Draw(t, "mode")
		}
		return p
	})
}

// P16: under any policy, a cut leaves every event on one side of it. It lies before a turn's first message, never
// inside an exchange with a tool. The newest turn stays, and a tail within its bounds.
func TestPlanCutsBetweenTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, w, tail := policies().Draw(t, "policy"), windows().Draw(t, "window"), logs().Draw(t, "tail")
		s := State{Tail: tail, Fixed: rapid.IntRange(0, 5000).Draw(t, "fixed"), SummaryTokens: rapid.IntRange(0, 2000).Draw(t, "standing")}
		cut, err := p.Plan(w, s)
		starts := TurnStarts(tail)
		if full := w.Available(s.Fixed) <= 0; errors.Is(err, ErrSystemDominates) != (full && len(tail) > 0) {
			t.Fatalf("%d tokens are available, and the plan says %v", w.Available(s.Fixed), err)
		}
		if err != nil {
			if p.Name == "token_budget" && errors.Is(err, ErrAllRecent) && len(starts) > 1 && TokensOf(tail) > w.Target() {
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
		if cut.Through != int64(cut.Index) || cut.Source+cut.Recent != TokensOf(tail) {
			t.Fatalf("cut %+v does not add up", cut)
		}
		budget := int(0.6 * float64(max(0, w.Available(s.Fixed))))
		if newest := TokensOf(tail[starts[len(starts)-1]:]); p.Name == "token_budget" && cut.Recent > max(budget, newest) {
			t.Fatalf("%d tokens stay, the budget is %d and the newest turn %d", cut.Recent, budget, newest)
		}
	})
}

// P5: after a cut the tail has as many messages or turns as the policy promises.
func TestPlanKeepsTheTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, tail := policies().Draw(t, "policy"), logs().Draw(t, "tail")
		p.TailMessages = min(p.TailMessages, rapid.IntRange(1, 40).Draw(t, "most"))
		if p.Segment == 0 {
			p.TailTurns = rapid.IntRange(0, 6).Draw(t, "tail turns")
		}
		cut, err := p.Plan(seed, State{Tail: tail})
		if err != nil {
			return
		}
		rest := tail[cut.Index:]
		if p.TailShare == 0 && len(rest) < p.TailMessages {
			t.Fatalf("%d events of %d stay, want %d", len(rest), len(tail), p.TailMessages)
		}
		if n := len(TurnStarts(rest)); n < p.TailTurns {
			t.Fatalf("%d turns stay, want %d", n, p.TailTurns)
		}
		if p.Segment > 0 && len(TurnStarts(tail[:cut.Index])) != p.Segment {
			t.Fatalf("%d turns leave, want %d", len(TurnStarts(tail[:cut.Index])), p.Segment)
		}
	})
}

// P4, P19: a call that waits for its result stays raw, with everything after it, and one that is answered in a later
// turn is not parted from its result.
func TestPlanKeepsOpenCalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, tail := policies().Draw(t, "policy"), logs().Draw(t, "tail")
		p.TailMessages = min(p.TailMessages, rapid.IntRange(0, 10).Draw(t, "tail messages"))
		if len(tail) == 0 || TokensOf(tail) > seed.Usable()/2 {
			return // in an overflowing context a call waited in vain
		}
		at := rapid.IntRange(0, len(tail)-1).Draw(t, "at")
		if tail[at].Role != sessions.RoleAssistant {
			return
		}
		tail[at].ToolCalls = append(slices.Clone(tail[at].ToolCalls), sessions.ToolCall{ID: "slow"})
		result := len(tail)
		if rapid.Bool().Draw(t, "answered") {
			result = rapid.IntRange(at+1, len(tail)).Draw(t, "result")
			tail = slices.Insert(slices.Clone(tail), result, sessions.Event{Role: sessions.RoleTool, ToolCallID: "slow", Tokens: 10})
			for i := range tail {
				tail[i].Seq = int64(i + 1)
			}
		}
		cut, err := p.Plan(seed, State{Tail: tail})
		if err == nil && at < cut.Index && cut.Index <= result {
			t.Fatalf("cut at %d between a call at %d and its result at %d of %d", cut.Index, at, result, len(tail))
		}
	})
}

func TestPlanWithACallThatNeverEnds(t *testing.T) {
	t.Parallel()
	p := Policies["sliding_window"]
	tail := compactiontest.Talk(40, 10)
	tail[1].ToolCalls = []sessions.ToolCall{{ID: "lost"}}
	if _, err := p.Plan(seed, State{Tail: tail}); !errors.Is(err, ErrBlockedHead) || !errors.Is(err, ErrAllRecent) {
		t.Errorf("a waiting call begins the view: %v", err)
	}
	if cut, err := p.Plan(seed, State{Tail: tail, SummaryTokens: seed.Usable()}); err != nil || cut.Index != 40 {
		t.Errorf("the context overflows, and a call that was lost is still waited for: %+v, %v", cut, err)
	}
}

// A view that its system prompt fills is not compacted: no summary would make room.
//
// P33
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
		"one turn":                 {compactiontest.Talk(1, 50000), 100, ErrAllRecent},
		"many turns":               {compactiontest.Talk(9, 9000), 100, nil},
		"all of it fits":           {compactiontest.Talk(9, 100), 100, ErrAllRecent},
		"prompt leaves one token":  {compactiontest.Talk(9, 9000), seed.Target() - budgetSlack - 1, nil},
		"prompt leaves no token":   {compactiontest.Talk(9, 9000), seed.Target() - budgetSlack, ErrSystemDominates},
		"prompt larger than all":   {compactiontest.Talk(9, 9000), 500000, ErrSystemDominates},
		"one turn, a huge prompt":  {compactiontest.Talk(1, 10), 90000, ErrSystemDominates},
		"one message and no reply": {compactiontest.Talk(1, 10)[:1], 100, ErrAllRecent},
	} {
		if _, err := p.Plan(seed, State{Tail: c.tail, Fixed: c.fixed}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	keep := Policies["offload"]
	for n, want := range map[int]error{5: ErrAllRecent, 6: ErrAllRecent, 7: nil} { // five is at least five: the cut lies before a turn
		if _, err := keep.Plan(seed, State{Tail: compactiontest.Talk(4, 10)[:n]}); !errors.Is(err, want) {
			t.Errorf("%d messages with a tail of 5: %v, want %v", n, err, want)
		}
	}
}

func TestTailInMessagesHasABound(t *testing.T) {
	t.Parallel()
	p := Policies["balanced"] // 40 messages, 0.6 of 63,500 tokens
	for name, c := range map[string]struct{ turns, tokens, stay int }{
		"small messages":         {60, 30, 40},
		"messages that fill it":  {60, 1200, 30},
		"large messages":         {20, 5000, 8},
		"messages that overflow": {20, 20000, 2},
	} {
		tail := compactiontest.Talk(c.turns, c.tokens)
		cut, err := p.Plan(seed, State{Tail: tail})
		if stay := len(tail) - cut.Index; err != nil || stay != c.stay {
			t.Errorf("%s: %d of %d stay (%v), want %d", name, stay, len(tail), err, c.stay)
		}
	}
}

// P21: a summary is no question, and a question that looks like one is a question.
func TestSummariesBeginNoTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tail := logs().Draw(t, "tail")
		var with []sessions.Event
		place := map[int]int{} // event of with -> its place in tail
		for i, e := range tail {
			if rapid.Bool().Draw(t, "summary before") {
				with = append(with, sessions.Event{Role: sessions.RoleSummary, Content: "[对话历史摘要]"})
			}
			place[len(with)] = i
			if e.Role == sessions.RoleUser {
				e.Content = "## PREVIOUS CONTEXT SUMMARY"
			}
			with = append(with, e)
		}
		var got []int
		for i, at := range TurnStarts(with) {
			if i == 0 {
				got = append(got, 0) // events before the first belong to it
				continue
			}
			got = append(got, place[at])
		}
		if want := TurnStarts(tail); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("turns begin at %v, want %v", got, want)
		}
	})
}

// A commit gate by size, and one by count. Progress is measured against the summarized part, not against the whole
// context: a tenth of a backlog is more than one attempt can summarize.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy                         string
		before, after, source, summary int
		ok                             bool
	}{
		"good":                       {"token_budget", 80000, 32000, 60000, 1200, true},
		"a part of a long backlog":   {"token_budget", 1425000, 1362000, 64000, 1000, true},
		"frees exactly 512":          {"token_budget", 80000, 79488, 1200, 680, true},
		"frees less than 512":        {"token_budget", 3000, 2500, 1200, 100, false},
		"grows":                      {"token_budget", 80000, 90000, 60000, 1200, false},
		"summary as long":            {"token_budget", 80000, 60000, 10000, 8000, false},
		"three short turns":          {"turns", 3000, 2950, 200, 150, true},
		"three short turns, at 256":  {"turns", 3000, 3056, 200, 256, true},
		"three short turns, a novel": {"turns", 3000, 3057, 200, 257, false},
		"a segment of some length":   {"turns", 9000, 8000, 2000, 1600, true},
		"a segment told too long":    {"turns", 9000, 8399, 2000, 1601, false},
		"a window of short messages": {"sliding_window", 30000, 29900, 420, 320, true},
		"an archive of few tokens":   {"archive", 30000, 29900, 420, 337, false},
		"results moved out":          {"offload", 80000, 79488, 0, 0, true},
		"results moved out for less": {"offload", 80000, 79489, 0, 0, false},
		"balanced frees a batch":     {"balanced", 80000, 75000, 6000, 400, true},
	} {
		if err := Policies[c.policy].Progress(c.before, c.after, c.source, c.summary); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The requested length counts what was offloaded by its whole texts, as far as the gate of the commit lets the summary
// pass with healed identifiers. Without offloaded results it is what it was.
func TestTargetCountsOffloadedResultsWhole(t *testing.T) {
	t.Parallel()
	p, count := Policies["offload"], compactiontest.Counter().Count
	lines := strings.Repeat("gw-17 answered 502 after 31 s, the retry came through\n", 300)
	for name, c := range map[string]struct{ results, talk, least, most int }{
		"some results":      {6, 300, 600, 800},
		"many results":      {20, 300, 2200, 2500},
		"results and talk":  {20, 4000, 4500, 5000},
		"talk alone":        {0, 4000, 1000, 1100},
		"a little talk":     {0, 1000, 250, 300},
		"results over most": {60, 4000, 8000, 8000},
	} {
		s := State{Tail: compactiontest.Talk(4, c.talk/8)}
		for i := range c.results {
			call := sessions.ToolCall{ID: fmt.Sprint(i), Name: "look"}
			text := fmt.Sprint(i, lines)
			s.Tail = append(s.Tail, compactiontest.Said(int64(3*i+9), "张伟", "查"),
				sessions.Event{Seq: int64(3*i + 10), Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{call}},
				sessions.Event{Seq: int64(3*i + 11), Role: sessions.RoleTool, ToolCallID: call.ID, ToolName: "look", Content: text, Tokens: count(text)})
		}
		s.Tokens = seed.Trigger()
		whole := TokensOf(s.Tail)
		shown, _ := p.Offload(seed, s, count)
		if len(shown) != c.results {
			t.Fatalf("%s: %d of %d results were offloaded", name, len(shown), c.results)
		}
		for _, one := range shown {
			for i := range s.Tail {
				if s.Tail[i].Seq == one.Seq {
					s.Tail[i].Tokens = one.Tokens
				}
			}
		}
		cut := Cut{Source: TokensOf(s.Tail), Whole: whole}
		got := p.SummaryTarget(seed, s, cut)
		if got < c.least || got > c.most {
			t.Errorf("%s: %d tokens are asked for of %d, shown as %d; want %d to %d", name, got, whole, cut.Source, c.least, c.most)
		}
		summary := got + HealAllowance(got)
		if err := p.Progress(100_000, 100_000-cut.Source+summary+2*tokens.MessageOverhead, cut.Source, summary); err != nil {
			t.Errorf("%s: a summary as asked for is refused: %v", name, err)
		}
	}
}
