package replay

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebb/cmd/lab/labtest"
	"ebb/compaction/tokens"
	"ebb/memory/draft"
	"ebb/sessions/llm"
	"ebb/sql"
	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

func TestPrefixesAreCachedWholeBlockByWholeBlock(t *testing.T) {
	t.Parallel()
	of := func(ids ...string) []promptBlock {
		var out []promptBlock
		for _, id := range ids {
			out = append(out, promptBlock{id, 10})
		}
		return out
	}
	for _, tt := range []struct {
		name         string
		before, then []promptBlock
		cached       int
	}{
		{"the first request", nil, of("a", "b"), 0},
		{"the same again", of("a", "b"), of("a", "b"), 20},
		{"one more at the end", of("a", "b"), of("a", "b", "c"), 20},
		{"another in the middle", of("a", "b", "c"), of("a", "x", "c"), 10},
		{"another at the head", of("a", "b"), of("x", "b"), 0},
		{"shorter than before", of("a", "b", "c"), of("a", "b"), 20},
	} {
		m := newMeter()
		m.recordCall(callMain, tt.before, 0)
		m.spend = [callKinds]callSpend{}
		m.recordCall(callMain, tt.then, 99)
		if got := m.spend[callMain]; got.cached != tt.cached || got.prompt != 10*len(tt.then) || got.output != 0 {
			t.Errorf("%s: %+v, want %d tokens cached", tt.name, got, tt.cached)
		}
	}
	m := newMeter()
	m.recordCall(callMain, of("a", "b"), 0)
	m.recordCall(callSummary, of("a", "b"), 5)
	if got := m.spend[callSummary]; got.cached != 0 || got.totalCost(0.1) != 20+outputPrice*5 {
		t.Errorf("another kind of request found %d tokens cached and costs %v", got.cached, got.totalCost(0.1))
	}
}

func TestCostCountsCachedInputAtItsPrice(t *testing.T) {
	t.Parallel()
	s := callSpend{prompt: 1000, cached: 900, output: 50}
	for price, want := range map[float64]float64{0: 300, 0.1: 390, 1: 1200} {
		if got := s.totalCost(price); got != want {
			t.Errorf("at %v it costs %v, want %v", price, got, want)
		}
	}
}

func TestSimulatedPoliciesDoWhatTheirFactsSay(t *testing.T) {
	t.Parallel()
	one := synthesizeTalks(1)[0]
	all := map[string]policyBill{}
	for _, p := range peerPolicies() {
		all[p.name] = simulateTalk(one, p, 1)
	}
	gaps := 0
	for i := range one.said {
		if one.gapBefore(i) > time.Hour {
			gaps++
		}
	}
	if b := all[nothingAtAll]; b.extraCalls() != 0 || b.tailMin != 0 || b.covered.shareOf() != 1 || b.largest < 20_000 {
		t.Errorf("without compaction: %+v", b)
	}
	if b := all[everyMessage]; b.extraCalls() != synthMessages-40 || b.tailMin != 40 {
		t.Errorf("a summary for every message: %d calls, tail %d", b.extraCalls(), b.tailMin)
	}
	// A batch of twelve at a time, and the rest of one at every gap.
	if b := all[windowSeed]; b.extraCalls() < (synthMessages-40)/12 || b.extraCalls() > (synthMessages-40)/12+gaps || b.tailMin < 40 || b.covered.shareOf() != 1 {
		t.Errorf("sliding window: %d calls, tail %d, %.2f covered", b.extraCalls(), b.tailMin, b.covered.shareOf())
	}
	if b := all[picoclawDefault]; b.extraCalls() < 3*synthMessages/20 || b.tailMin != 4 || b.covered.shareOf() > 0.2 {
		t.Errorf("picoclaw: %d calls, tail %d, %.2f covered: it forgets", b.extraCalls(), b.tailMin, b.covered.shareOf())
	}
	if b := all[nanobotDefault]; b.extraCalls() != gaps || b.tailMin != 8 || b.covered.shareOf() != 1 {
		t.Errorf("nanobot: %d calls for %d gaps, tail %d, %.2f covered", b.extraCalls(), gaps, b.tailMin, b.covered.shareOf())
	}
	b := all[pomelobotAtEight]
	if summaries, flushes := b.spend[callSummary].calls, b.spend[callFlush].calls; summaries == 0 || flushes < summaries || flushes > summaries+1 {
		t.Errorf("pomelobot: %d summaries and %d flushes, want a flush in each cycle", summaries, flushes)
	}
	if b.largest >= budgetAt+500 {
		t.Errorf("pomelobot: a request of %d tokens at a threshold of %d", b.largest, budgetAt)
	}
}

func TestIdentifiersWearAwayWhereSummariesMissSome(t *testing.T) {
	t.Parallel()
	one := synthesizeTalks(1)[0]
	p := slidingWindow("", 12, 6, 0)
	if b := simulateTalk(one, p, 1); b.survived[14].of == 0 || b.survived[14].shareOf() != 1 {
		t.Errorf("with perfect summaries %+v are left after 15", b.survived[14])
	}
	b := simulateTalk(one, p, missingTenth)
	if first, last := b.survived[0].shareOf(), b.survived[14].shareOf(); first < 0.6 || last >= first {
		t.Errorf("with careless summaries %.2f are left after one compaction and %.2f after 15", first, last)
	}
}

func TestSyntheticTalksHaveTheShapeOfRecordedOnes(t *testing.T) {
	t.Parallel()
	a, again := synthesizeTalks(2), synthesizeTalks(2)
	tokens, marks, gaps := 0, 0, 0
	for i, m := range a[0].said {
		if m != again[0].said[i] {
			t.Fatalf("message %d differs from one time to the next", i)
		}
		tokens += m.tokenCount()
		if m.mark != "" {
			marks++
			if !strings.Contains(m.text, m.mark) || i%2 != 0 {
				t.Errorf("message %d has no mark of the person's: %q", i, m.text)
			}
		}
		if a[0].gapBefore(i) > time.Hour {
			gaps++
		}
	}
	if mean := tokens / synthMessages; mean < 30 || mean > 50 {
		t.Errorf("messages of %d tokens on average", mean)
	}
	if marks < 25 || gaps < 19 || gaps > 32 {
		t.Errorf("%d marks and %d sessions", marks, gaps+1)
	}
	if a[0].said[0].text == a[1].said[0].text {
		t.Error("two talks begin with the same words")
	}
}

func TestRecordedTalksAreReadFromTheirFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readTalks(dir); err == nil || !strings.Contains(err.Error(), locomoFile) {
		t.Errorf("an empty folder gave %v", err)
	}
	line := func(conv, ts, text string) string {
		return `{"conv":"` + conv + `","ts":"` + ts + `","text":"` + text + `","speaker":"A"}` + "\n"
	}
	file := filepath.Join(dir, "some", locomoFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	text := line("c1", "2023-05-08T13:56:00", "hello") + line("c1", "2023-05-10T10:00:00", "hi") +
		line("c1", "2023-05-11T10:00:00", "nobody answers") + line("c2", "2023-05-08T13:56:00", "x") + line("c2", "2023-05-08T13:56:00", "y")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	talks, err := readTalks(dir)
	if err != nil || len(talks) != 2 || len(talks[0].said) != 2 || talks[1].said[1].text != "y" {
		t.Fatalf("got %+v, %v", talks, err)
	}
	if talks[0].gapBefore(1) != 0 {
		t.Error("a reply is taken to have come days after its question")
	}
	if err := os.WriteFile(file, []byte(text+"{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readTalks(dir); err == nil || !strings.Contains(err.Error(), "line 6") {
		t.Errorf("a broken line gave %v", err)
	}
}

// A bill with another conversation's requests in it is no measurement.
func TestReplayFailsOverARequestAboutAnotherConversation(t *testing.T) {
	t.Parallel()
	talks := synthesizeTalks(2)
	for name, tools := range map[string]string{"flush": draft.SaveTool, "summary": ""} {
		for i, whose := range talks {
			m := newCountingModel(talks[0], segmentCap, 1)
			line, err := json.Marshal(map[string]any{"n": 1, "who": "Alex", "role": "user", "text": whose.said[0].text})
			if err != nil {
				t.Fatal(err)
			}
			r := llm.Request{Force: tools, Messages: []llm.Message{{Role: "system", Content: "About 400 tokens"}, {Role: "user", Content: string(line)}}}
			if _, err := m.Generate(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if _, err := m.finalBill(); (err != nil) != (i == 1) {
				t.Errorf("%s of conversation %d on the bill of conversation 0: error %v", name, i, err)
			}
		}
	}
}

// The background work of a gateway covers all sessions of its database, those of finished replays too.
func TestReplaysShareNoDatabase(t *testing.T) {
	t.Parallel()
	server, err := localpg.Start(t.Context(), localpg.Options{Dir: filepath.Join(labtest.OpenDir(t), "postgres"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Discard(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if _, err := sql.Migrate(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	talks := synthesizeTalks(2)
	for i := range talks {
		talks[i].said = talks[i].said[:4]
	}
	results, err := runAll(t.Context(), server, talks, ourPolicies()[:2])
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if got := r.bill.spend[callMain].calls; got != 4 {
			t.Errorf("%s: %d requests of the conversations, want 4", r.name, got)
		}
	}
	store, err := sql.Open(t.Context(), sql.Options{URL: server.URL(), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if left, err := store.Lists.Sessions(t.Context(), 10); err != nil || len(left) > 0 {
		t.Errorf("%d sessions of replays are in the database of the server, %v", len(left), err)
	}
}

// P84
func TestBalancedCostsHalfOfTheSlidingWindow(t *testing.T) {
	t.Parallel()
	one := synthesizeTalks(1)
	seed := simulateTalk(one[0], slidingWindow(windowSeed, 12, 1, seedCooldown), 1)
	var balanced ourPolicy
	for _, c := range ourPolicies() {
		if c.name == balancedAsItComes {
			balanced = c
		}
	}
	balanced.copied = 1
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	b, err := balanced.replayTalk(t.Context(), sqltest.URL(t), counter, one[0])
	if err != nil {
		t.Fatal(err)
	}
	if ours, theirs := b.totalCost(targetPrice), seed.totalCost(targetPrice); ours > 0.5*theirs {
		t.Errorf("it costs %.0f, the sliding window %.0f", ours, theirs)
	}
	if ours, theirs := b.extraCalls(), seed.extraCalls(); 8*ours > theirs {
		t.Errorf("it makes %d calls, the sliding window %d", ours, theirs)
	}
	if share := b.cachedShare(); share < 0.95 {
		t.Errorf("%.3f of its prompts are cached", share)
	}
	if b.covered.shareOf() != 1 || b.tailMin < 40 || b.spend[callSummary].calls == 0 {
		t.Errorf("%.3f covered, %d messages raw at the least, %d summaries", b.covered.shareOf(), b.tailMin, b.spend[callSummary].calls)
	}
}
