package extract

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/memorytest"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// errRefused is a provider's word that a request is to blame.
var errRefused = &llm.CallError{Class: llm.Refused, Err: errors.New("data_inspection_failed")}

// wary is a model that fails in some way at each of some events, and saves what it reads.
type wary struct {
	bad   []int64
	fail  func() (llm.Response, error)
	asked []llm.Request
	read  map[int64]bool
}

func (m *wary) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	m.asked = append(m.asked, r)
	var from, through int64
	if _, err := fmt.Sscanf(llmtest.Data(r), "events %d-%d", &from, &through); err != nil {
		return m.fail() // notes of what it said before
	}
	for _, seq := range m.bad {
		if from <= seq && seq <= through {
			return m.fail()
		}
	}
	for seq := max(from, 1); seq <= through; seq++ { // 0 is no event
		m.read[seq] = true
	}
	return llm.Response{ToolCalls: memorytest.Saves(memorytest.SaveCall(fmt.Sprintf("parcel %d stands in yard %d", from, through))), Usage: sessions.Usage{Prompt: 1}}, nil
}

func refused() (llm.Response, error) {
	return llm.Response{}, fmt.Errorf("asking: %w", errRefused)
}

// hugeFact is a call whose only fact is longer than one may be.
func hugeFact() (llm.Response, error) {
	return llm.Response{ToolCalls: memorytest.Saves(memorytest.SaveCall(strings.Repeat("a parcel ", draft.MaxFactBytes/8)))}, nil
}

// A model that fails because of one message holds up no other: that one is found in few calls, skipped and reported.
func TestUnreadableEventIsSkipped(t *testing.T) {
	t.Parallel()
	const n = 64
	for how, fail := range map[string]func() (llm.Response, error){
		"refused": refused, "prose": memorytest.Prose("Noted."), "silent": memorytest.Prose(""), "junk": memorytest.Args("{"), "a huge fact": hugeFact,
	} {
		for _, bad := range [][]int64{{1}, {2}, {33}, {n - 1}, {n}, {1, 2}, {20, 50}, {n - 1, n}} {
			s := &shelf{events: logOf(n, 1), epoch: -1, memories: []memory.Memory{{ID: 1, Content: "tea is green"}}}
			m := &wary{bad: bad, fail: fail, read: map[int64]bool{}}
			out, err := flusher(s, m, 1000).Flush(t.Context(), due(s))
			if err != nil || s.cursor != n || s.epoch != 3 {
				t.Fatalf("%s at %v: %v, cursor %d, epoch %d", how, bad, err, s.cursor, s.epoch)
			}
			if !slices.Equal(out.Passed, bad) || !strings.Contains(out.String(), fmt.Sprint("passed over ", len(bad))) {
				t.Errorf("%s at %v: passed %v, said %q", how, bad, out.Passed, out)
			}
			if len(m.read) != n-len(bad) {
				t.Errorf("%s at %v: %d events were read", how, bad, len(m.read))
			}
			if most := len(bad) * (2*bits.Len(n) + 5); len(m.asked) > most {
				t.Errorf("%s at %v: %d calls, want at most %d", how, bad, len(m.asked), most)
			}
			for i, f := range s.flushes {
				if f.Last != (i == len(s.flushes)-1) || i > 0 && f.From != s.flushes[i-1].Through {
					t.Errorf("%s at %v: part %d is (%d, %d], last: %v", how, bad, i, f.From, f.Through, f.Last)
				}
			}
		}
	}
}

// Without another event for comparison, events are owed until three failures. Then they are skipped, if the model reads
// at all. A model that fails at everything, or is busy, never makes a flush skip an event.
func TestLoneBadEventsAreOwedAtFirst(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 10} {
		for failures := range 5 {
			for _, broken := range []bool{false, true} {
				s := &shelf{events: logOf(n, 1)}
				m := &wary{fail: refused, read: map[int64]bool{}}
				for i := range n {
					m.bad = append(m.bad, int64(i+1))
				}
				if broken {
					m.bad = append(m.bad, 0) // a number without an event
				}
				d := due(s)
				d.Session.FlushFailures = failures
				out, err := flusher(s, m, 100).Flush(t.Context(), d)
				moved := 0
				if failures >= 3 && !broken {
					moved = n
				}
				if s.cursor != int64(moved) || len(out.Passed) != moved || (err == nil) != (moved == n) || len(s.memories) > 0 {
					t.Errorf("%d bad events after %d failures, broken: %v: cursor %d, passed %v, %v", n, failures, broken, s.cursor, out.Passed, err)
				}
				if most := 7 + 4*moved; len(m.asked) > most {
					t.Errorf("%d bad events after %d failures took %d calls", n, failures, len(m.asked))
				}
				b := &memorytest.CallModel{Answers: []func() (llm.Response, error){memorytest.Away}}
				s.cursor = 0
				if out, err := flusher(s, b, 100).Flush(t.Context(), d); !errors.Is(err, memorytest.ErrModel) || s.cursor != 0 || out.Calls != 1 {
					t.Errorf("a busy model: %v, cursor %d, %d calls", err, s.cursor, out.Calls)
				}
			}
		}
	}
}

// A provider that begins to refuse everything in the middle of a flush loses nothing: what it did not read is owed.
func TestNothingIsPassedOverOnceTheModelFailsAtEverything(t *testing.T) {
	t.Parallel()
	for _, good := range []int{1, 2, 7} {
		for _, failures := range []int{0, 5} {
			s := &shelf{events: logOf(300, 100)}
			n := 0
			f := flusher(s, modelFunc(func(llm.Request) (llm.Response, error) {
				if n++; n > good {
					return refused()
				}
				return memorytest.Args(memorytest.SaveCall(fmt.Sprintf("parcel %d stands in the yard", n)))()
			}), 1000)
			d := due(s)
			d.Session.FlushFailures = failures
			out, err := f.Flush(t.Context(), d)
			if err == nil || len(out.Passed) > 0 || s.cursor == 0 || s.cursor == 300 || len(s.memories) != good || out.Calls > good+12 {
				t.Errorf("after %d good calls: passed %v, cursor %d, %d facts, %d calls, %v", good, out.Passed, s.cursor, len(s.memories), out.Calls, err)
			}
		}
	}
}

// If the provider refuses a known fact, the events are read without it.
func TestARefusedKnownFactIsNotShown(t *testing.T) {
	t.Parallel()
	s := &shelf{events: logOf(8, 1), memories: []memory.Memory{{ID: 1, Content: "tea is green"}}}
	var asked []llm.Request
	f := flusher(s, modelFunc(func(r llm.Request) (llm.Response, error) {
		asked = append(asked, r)
		if strings.Contains(llmtest.Data(r), "tea") {
			return refused()
		}
		return memorytest.Args(memorytest.SaveCall("Alice owns billing"))()
	}), 1000)
	if out, err := f.Flush(t.Context(), due(s)); err != nil || s.cursor != 8 || len(out.Passed) > 0 || len(asked) != 2 {
		t.Errorf("cursor %d, %+v, %v after %d calls", s.cursor, out, err, len(asked))
	}
}

type modelFunc func(r llm.Request) (llm.Response, error)

func (f modelFunc) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	return f(r)
}

// A model whose arguments are refused gets the reason, as data, and sees the events again.
func TestModelGetsItsFaults(t *testing.T) {
	t.Parallel()
	s := &shelf{events: logOf(3, 1)}
	m := &memorytest.CallModel{Answers: []func() (llm.Response, error){hugeFact, memorytest.Args(memorytest.SaveCall("Alice owns billing"))}}
	if _, err := flusher(s, m, 1000).Flush(t.Context(), due(s)); err != nil {
		t.Fatal(err)
	}
	if got := llmtest.Data(m.Asked[1]); !strings.HasPrefix(got, "events 1-3") || !strings.Contains(got, "<refused>") || !strings.Contains(got, "facts[0].content: has ") {
		t.Errorf("the second request is %q", got)
	}
}

// dense is a model that finds a fact in each of n places of a log. A call has the first ones that it holds. If the
// model heeds known facts, it leaves them out.
type dense struct {
	each  int // facts of an event
	heeds bool
	calls int
}

func (m *dense) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	m.calls++
	var from, through int
	if _, err := fmt.Sscanf(llmtest.Data(r), "events %d-%d", &from, &through); err != nil {
		return llm.Response{}, err
	}
	var found []string
	for seq := from; seq <= through; seq++ {
		for i := range m.each {
			one := fmt.Sprintf("parcel %d-%d stands in the yard", seq, i)
			if len(found) < draft.MaxFacts && (!m.heeds || !strings.Contains(llmtest.Data(r), one+"\n")) {
				found = append(found, one)
			}
		}
	}
	if len(found) == 0 {
		return memorytest.Args(`{"facts":[],"nothing_to_save":true}`)()
	}
	return memorytest.Args(memorytest.SaveCall(found...))()
}

// No fact is lost because more stand in a part than one call holds.
func TestDensePartsAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		events, each int
		heeds        bool
	}{{60, 1, true}, {60, 1, false}, {1, 60, true}, {3, 25, true}, {20, 1, false}, {7, 19, false}} {
		s := &shelf{events: logOf(c.events, 1)}
		m := &dense{each: c.each, heeds: c.heeds}
		f := flusher(s, m, 1000)
		out, err := f.Flush(t.Context(), due(s))
		want := c.events * c.each
		if err != nil || s.cursor != int64(c.events) || len(s.memories) != want || len(out.Receipt.Saved) != want {
			t.Errorf("%+v: %d facts stored, want %d; cursor %d, %v", c, len(s.memories), want, s.cursor, err)
		}
		if m.calls > want/3+8 {
			t.Errorf("%+v: %d calls", c, m.calls)
		}
		spent := sessions.Usage{}
		for _, f := range s.flushes {
			spent = spent.Add(f.Usage)
		}
		if spent != out.Usage || out.Lost != (sessions.Usage{}) {
			t.Errorf("%+v: stored parts count %+v, lost %+v, of %+v", c, spent, out.Lost, out.Usage)
		}
	}
	s := &shelf{events: logOf(2, 1)}
	endless := 0
	f := flusher(s, modelFunc(func(llm.Request) (llm.Response, error) {
		var found []string
		for range draft.MaxFacts {
			endless++
			found = append(found, fmt.Sprintf("parcel %d stands in the yard", endless))
		}
		return memorytest.Args(memorytest.SaveCall(found...))()
	}), 100)
	if out, err := f.Flush(t.Context(), due(s)); err != nil || s.cursor != 2 || out.Calls > maxMore+1 {
		t.Errorf("a model without an end: %d calls, cursor %d, %v", out.Calls, s.cursor, err)
	}
}

// A model that fills every call is asked a bounded number of times. With the known facts shown it is believed, and
// invented facts are bounded.
func TestFullCallsHaveTheirBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, vary bool
		calls, rows int // at most
	}{
		"known facts":    {true, false, 5, 10},
		"the same facts": {false, false, 7, 16}, // two looks and one at the second half; one at each other part
		"endless facts":  {false, true, 5 * (maxMore + 2), 5 * (maxMore + 4)},
	} { // a log of five parts
		s, calls := &shelf{events: logOf(1200, 10)}, 0
		same := func(release int) (found []string) {
			for i := range draft.MaxFacts {
				found = append(found, fmt.Sprintf("module %d of release %d is due", i, release))
			}
			return found
		}
		if c.known {
			for _, one := range same(0) {
				s.memories = append(s.memories, memory.Memory{ID: int64(len(s.memories) + 1), Scope: memory.ScopeGroup, ScopeID: "r/c", Content: one})
			}
		}
		f := flusher(s, modelFunc(func(llm.Request) (llm.Response, error) {
			if calls++; c.vary {
				return memorytest.Args(memorytest.SaveCall(same(calls)...))()
			}
			return memorytest.Args(memorytest.SaveCall(same(0)...))()
		}), 4500)
		d := due(s)
		d.Session.RobotCode, d.Session.ConversationID, d.Session.ConversationType = "r", "c", sessions.Group
		out, err := f.Flush(t.Context(), d)
		if err != nil || s.cursor != 1200 || out.Calls > c.calls || len(s.flushes) > c.rows {
			t.Errorf("%s: %d calls and %d rows, cursor %d, %v", name, out.Calls, len(s.flushes), s.cursor, err)
		}
	}
}

// A part that fills its call is read again. If that brings nothing new, one more call ends it.
func TestASecondLookIsEnough(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]sessions.Event{"many messages": logOf(60, 10), "one message": {
		{Seq: 1, Role: sessions.RoleUser, SenderID: "u1", SenderNick: "Alice", Content: strings.Repeat("parcels stand in the yard. ", 300)},
	}} {
		s := &shelf{events: events}
		var found []string
		for i := range draft.MaxFacts {
			found = append(found, fmt.Sprintf("module %d of the release is due", i))
		}
		out, err := flusher(s, modelFunc(func(llm.Request) (llm.Response, error) {
			return memorytest.Args(memorytest.SaveCall(found...))()
		}), 8000).Flush(t.Context(), due(s))
		if err != nil || out.Calls != 3 || len(s.memories) != draft.MaxFacts || s.cursor != int64(len(events)) {
			t.Errorf("%s: %d calls, want 3; %d facts, cursor %d, %v", name, out.Calls, len(s.memories), s.cursor, err)
		}
	}
}

// A flush ends behind the part that uses the rest of the day's budget. Its facts stay, and the next flush continues
// from there.
func TestAFlushEndsWithItsBudget(t *testing.T) {
	t.Parallel()
	for budget, want := range map[int]int64{0: 10, 1: 1, 11: 1, 12: 2, 1000: 10} {
		s := &shelf{events: logOf(10, 100)}
		d := due(s)
		d.Budget = budget
		n := 0
		f := flusher(s, modelFunc(func(llm.Request) (llm.Response, error) {
			n++
			return memorytest.Args(memorytest.SaveCall(fmt.Sprintf("parcel %d stands in the yard", n)))() // 11 tokens
		}), 100)
		out, err := f.Flush(t.Context(), d)
		if s.cursor != want || len(s.memories) != int(want) || errors.Is(err, ErrSpent) != (want < 10) || out.Lost != (sessions.Usage{}) {
			t.Errorf("with %d tokens: cursor %d, %d facts, want %d; lost %+v, %v", budget, s.cursor, len(s.memories), want, out.Lost, err)
		}
	}
	s := &shelf{events: logOf(10, 10)}
	d := due(s)
	d.Budget = 20
	m := &dense{each: draft.MaxFacts, heeds: true}
	f := flusher(s, modelFunc(func(r llm.Request) (llm.Response, error) {
		c, err := m.Generate(t.Context(), r)
		c.Usage = sessions.Usage{Prompt: 30}
		return c, err
	}), 50)
	if out, err := f.Flush(t.Context(), d); !errors.Is(err, ErrSpent) || out.Calls != 1 || s.cursor == 0 {
		t.Errorf("full calls with a budget: %d of them, cursor %d, %v", out.Calls, s.cursor, err)
	}
}

var batchRE = regexp.MustCompile(`parcel \d+ stands`)

// The same goes for the text of one message, where the model begins at its beginning however often it is asked.
func TestDenseTextsAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	e := logOf(2, 1)
	for i := range 60 {
		e[1].Content += fmt.Sprintf("parcel %d stands in the yard.\n", i)
	}
	s := &shelf{events: e}
	f := flusher(s, modelFunc(func(r llm.Request) (llm.Response, error) {
		found := batchRE.FindAllString(llmtest.Data(r), draft.MaxFacts)
		if len(found) == 0 {
			return memorytest.Args(`{"facts":[],"nothing_to_save":true}`)()
		}
		return memorytest.Args(memorytest.SaveCall(found...))()
	}), 4000)
	f.Context, f.Count = 40_000, func(text string) int { return len(text) }
	f.Render = func(es []sessions.Event, _ int) (string, int) { return es[0].Content, 1 }
	f.Fence = func(string, string) string { return "" } // known facts are ignored
	out, err := f.Flush(t.Context(), due(s))
	if err != nil || s.cursor != 2 || len(s.memories) != 60 || out.Calls > 20 {
		t.Errorf("%d facts stored, want 60; %d calls, cursor %d, %v", len(s.memories), out.Calls, s.cursor, err)
	}
}

// A fact without a known speaker belongs to all shown events, also before the cursor moved past them: an erasure of one
// of those finds it.
func TestFactsAreOfTheEventsThatWereShown(t *testing.T) {
	t.Parallel()
	s := &shelf{events: logOf(60, 1)}
	m := &dense{each: 1, heeds: true}
	if _, err := flusher(s, m, 1000).Flush(t.Context(), due(s)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range s.flushes {
		for _, d := range f.Drafts {
			if n++; d.StartSeq != 1 || d.EndSeq != 60 {
				t.Errorf("%q is of events %d to %d", d.Content, d.StartSeq, d.EndSeq)
			}
		}
	}
	if n != 60 {
		t.Errorf("%d facts, want 60", n)
	}
}

// Paid calls are counted, also if their facts could not be stored.
func TestPaidCallsAreCountedWhereTheCommitFails(t *testing.T) {
	t.Parallel()
	s := &shelf{events: logOf(3, 1), failFlush: sessions.ErrConflict}
	m := &memorytest.CallModel{Answers: []func() (llm.Response, error){memorytest.Prose("Noted."), memorytest.Args(memorytest.SaveCall("Alice owns billing"))}}
	out, err := flusher(s, m, 100).Flush(t.Context(), due(s))
	if !errors.Is(err, sessions.ErrConflict) || !errors.Is(err, ErrStorage) || out.Lost != (sessions.Usage{Prompt: 10, Completion: 1}) {
		t.Errorf("lost %+v of %+v, %v", out.Lost, out.Usage, err)
	}
}
