package summarize

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ebb/compaction"
	"ebb/compaction/compactiontest"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// world is a session's log and the summaries of its view, as a store would keep them.
type world struct {
	fatal   func(format string, args ...any)
	engine  *Engine
	log     []sessions.Event
	active  []sessions.Summary
	cursor  int64
	longest int
}

func newWorld(tb testing.TB, m llm.Model) *world {
	tb.Helper()
	return &world{fatal: tb.Fatalf, engine: engine(m), longest: 2000}
}

// compact summarizes some more turns under a policy and commits the draft.
func (w *world) compact(p compaction.Policy, turns int) Draft {
	fresh := eventsFrom(w.cursor+1, turns, 80)
	w.log = append(w.log, fresh...)
	task := taskOf(p, fresh, slices.Clone(w.active)...)
	task.Longest = w.longest
	task.Raw = func(_ context.Context, from, through int64) ([]sessions.Event, error) {
		return slices.Clone(w.log[from:through]), nil
	}
	d, err := w.engine.Summarize(context.Background(), task)
	if err != nil {
		w.fatal("%s: %v", p.Name, err)
	}
	for _, s := range d.Summaries {
		w.commit(s)
	}
	w.cursor = task.Through
	w.check(p)
	return d
}

// commit puts a summary in the place of the active ones in its range.
func (w *world) commit(s sessions.NewSummary) {
	w.active = slices.DeleteFunc(w.active, func(a sessions.Summary) bool { return s.StartSeq <= a.StartSeq && a.EndSeq <= s.EndSeq })
	w.active = append(w.active, sessions.Summary{
		StartSeq: s.StartSeq, EndSeq: s.EndSeq, Text: s.Text, Tokens: s.Tokens, Level: s.Level, MsgCount: int(s.EndSeq - s.StartSeq + 1),
	})
	slices.SortFunc(w.active, func(a, b sessions.Summary) int { return int(a.StartSeq - b.StartSeq) })
}

// check fails unless the active summaries lie end to end.
func (w *world) check(p compaction.Policy) {
	next := int64(1)
	for _, s := range w.active {
		if s.StartSeq != next || s.EndSeq < s.StartSeq {
			w.fatal("%s: summary of %d to %d, want it to begin at %d", p.Name, s.StartSeq, s.EndSeq, next)
		}
		next = s.EndSeq + 1
	}
	if next != w.cursor+1 {
		w.fatal("%s: summaries end at %d, the cursor stands at %d", p.Name, next-1, w.cursor)
	}
}

// P13, P31: however long a history grows, its summaries lie end to end and stay within their bounds, for all policies.
func TestSummariesStayBounded(t *testing.T) {
	t.Parallel()
	for name, p := range compaction.Policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sizes := rand.New(rand.NewPCG(1, 2))
			w := newWorld(t, obedient())
			for range 30 {
				before := slices.Clone(w.active)
				d := w.compact(p, 3+sizes.IntN(10))
				if newest := d.Summaries[len(d.Summaries)-1]; newest.Tokens > w.longest {
					t.Fatalf("a summary of %d tokens", newest.Tokens)
				}
				if p.Rolling {
					if len(w.active) != 1 {
						t.Fatalf("%d summaries", len(w.active))
					}
					continue
				}
				if n := compaction.TokensIn(w.active); n > p.RollUpTokens || len(w.active) > p.RollUpSegments {
					t.Fatalf("%d summaries take %d tokens, want at most %d and %d", len(w.active), n, p.RollUpSegments, p.RollUpTokens)
				}
				if len(d.Summaries) == 2 {
					rolled := d.Summaries[0]
					if rolled.StartSeq != before[0].StartSeq || rolled.EndSeq != before[len(before)-1].EndSeq || rolled.Level == 0 {
						t.Fatalf("%d to %d at level %d was made of %d to %d", rolled.StartSeq, rolled.EndSeq, rolled.Level,
							before[0].StartSeq, before[len(before)-1].EndSeq)
					}
				}
			}
			if !p.Rolling && w.active[0].Level < 2 {
				t.Errorf("after 30 compactions the oldest summary has level %d: nothing was rolled up again", w.active[0].Level)
			}
		})
	}
}

// P31: a model that writes what it likes cannot make summaries grow without end either.
func TestLongWindedSummariesStayBounded(t *testing.T) {
	t.Parallel()
	n := 0
	w := newWorld(t, &modelFunc{answer: func(i int, _ llm.Request) (llm.Response, error) {
		n++
		return llm.Response{Text: gist(900, uint64(n)), Finish: llm.FinishStop}, nil
	}})
	for range 15 {
		w.compact(compaction.Policies["archive"], 20)
		if len(w.active) > 3 || compaction.TokensIn(w.active) > 3000 {
			t.Fatalf("%d summaries of %d tokens", len(w.active), compaction.TokensIn(w.active))
		}
	}
}

// segments are active summaries of ten turns each.
func segments(n, tokens int) []sessions.Summary {
	var out []sessions.Summary
	for i := range n {
		out = append(out, sessions.Summary{
			StartSeq: int64(20*i + 1), EndSeq: int64(20*i + 20), Text: fmt.Sprintf("段落 %d：%s", i, gist(tokens-10, uint64(i))), Tokens: tokens, MsgCount: 20, Level: i % 2,
		})
	}
	return out
}

// A roll-up reads the raw events if they are at most 4,000 tokens, otherwise the summaries.
func TestRollUpFromRawEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tokens int // tokens of an event
		err    error
		raw    bool
	}{
		"fits":             {30, nil, true},
		"just fits":        {46, nil, true}, // 80 x 50 tokens
		"too long":         {47, nil, false},
		"can't be read":    {50, errors.New("connection reset"), false},
		"nothing is there": {0, nil, false},
	} {
		m := obedient()
		active := segments(4, 400)
		task := taskOf(compaction.Policies["archive"], eventsFrom(81, 5, 80), active...)
		var asked [2]int64
		task.Raw = func(_ context.Context, from, through int64) ([]sessions.Event, error) {
			asked = [2]int64{from, through}
			if c.tokens == 0 {
				return nil, nil
			}
			return compactiontest.Talk(40, c.tokens), c.err
		}
		d, err := engine(m).Summarize(t.Context(), task)
		if err != nil || len(d.Summaries) != 2 || d.Report.RolledUp != 4 || d.Report.RollUpFailed != "" {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		if s := d.Summaries[0]; s.StartSeq != 1 || s.EndSeq != 80 || s.Level != 2 {
			t.Errorf("%s: %+v", name, s)
		}
		if asked != [2]int64{0, 80} {
			t.Errorf("%s: events after %d up to %d were read", name, asked[0], asked[1])
		}
		rollUp := llmtest.Data(m.asked[1])
		if raw := strings.Contains(rollUp, "回答 39"); raw != c.raw || strings.Contains(rollUp, "段落 3") == c.raw {
			t.Errorf("%s: summarized from events: %v", name, raw)
		}
		if c.raw == strings.Contains(rollUp, `"role":"summary"`) || c.raw == strings.Contains(llmtest.Instructions(m.asked[1]), "旧摘要") {
			t.Errorf("%s: the lines are not what the instructions call them: %s", name, llmtest.Instructions(m.asked[1]))
		}
	}
}

// A log that is longer than any request is not read in order to find that out.
func TestLongLogIsNotRead(t *testing.T) {
	t.Parallel()
	active := segments(4, 400)
	active[0].MsgCount = 100_000
	task := taskOf(compaction.Policies["archive"], eventsFrom(81, 5, 80), active...)
	task.Raw = func(context.Context, int64, int64) ([]sessions.Event, error) {
		t.Error("100,000 events were read")
		return nil, nil
	}
	if d, err := engine(obedient()).Summarize(t.Context(), task); err != nil || d.Report.RolledUp != 4 {
		t.Fatalf("%+v, %v", d, err)
	}
}

// P13, P31: a failed roll-up leaves the older summaries as they are, and the new one stands. The next compaction
// repeats the roll-up.
func TestFailedRollUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		if name == "timeout" {
			continue // it takes the task's deadline with it
		}
		broken := true
		ok := obedient()
		n := 0
		w := newWorld(t, llmtest.Func(func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if n++; broken && n > 1 {
				return mode(ctx)
			}
			return ok.Generate(ctx, r)
		}))
		for _, s := range segments(8, 140) {
			w.commit(sessions.NewSummary{StartSeq: s.StartSeq, EndSeq: s.EndSeq, Text: s.Text, Tokens: s.Tokens})
		}
		w.log, w.cursor = compactiontest.Talk(80, 80), 160
		d := w.compact(compaction.Policies["archive"], 4)
		if len(d.Summaries) != 1 || len(w.active) != 9 || d.Report.RollUpFailed != "events 1 to 160" || d.Report.RolledUp != 0 {
			t.Errorf("%s: %d summaries, %+v", name, len(w.active), d.Report)
		}
		if n > 1+maxHalved+1 {
			t.Errorf("%s: %d calls", name, n)
		}
		broken = false
		if d := w.compact(compaction.Policies["archive"], 4); d.Report.RolledUp != 9 || len(w.active) != 2 {
			t.Errorf("%s: after it %d summaries, %+v", name, len(w.active), d.Report)
		}
	}
}

// A model that stood in for the summaries' own also rolls up: the broken one is not asked again.
func TestStandInRollsUpToo(t *testing.T) {
	t.Parallel()
	ok := obedient()
	m := &modelFunc{answer: func(n int, r llm.Request) (llm.Response, error) {
		if r.Model == "cheap" {
			return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: errModel}
		}
		return ok.answer(n, r)
	}}
	e := engine(m)
	e.Summarizer.Name = "cheap"
	d, err := e.Summarize(t.Context(), taskOf(compaction.Policies["archive"], eventsFrom(81, 5, 80), segments(4, 400)...))
	if err != nil || d.Report.RolledUp != 4 || d.Report.Fallback != "main" || m.models() != "cheap chat chat" {
		t.Errorf("asked %s: %+v, %v", m.models(), d.Report, err)
	}
	if d.Report.Calls != 3 || d.Cost != 2 || d.Usage.Prompt != 20 {
		t.Errorf("%d calls took %+v, %v", d.Report.Calls, d.Usage, d.Cost)
	}
}
