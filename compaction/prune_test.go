package compaction

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/sessions"
)

// asked is a turn with one tool call and its result.
func asked(seq int64, tool, result string) []sessions.Event {
	return []sessions.Event{
		{Seq: seq, Role: sessions.RoleUser, Content: "查一下", Tokens: 3},
		{Seq: seq + 1, Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: tool}}, Tokens: 5},
		{Seq: seq + 2, Role: sessions.RoleTool, ToolCallID: "c", ToolName: tool, Content: result, Tokens: compactiontest.Counter().Count(result)},
		{Seq: seq + 3, Role: sessions.RoleAssistant, Content: "好了", Tokens: 2},
	}
}

// show is a tail as the view shows it from now on.
func show(tail []sessions.Event, shown []sessions.Shown) []sessions.Event {
	out := append([]sessions.Event(nil), tail...)
	for _, s := range shown {
		for i, e := range out {
			if e.Seq == s.Seq {
				out[i].Content, out[i].Tokens, out[i].Blob = s.Text, s.Tokens, s.Blob
			}
		}
	}
	return out
}

// report is a text of a number of characters, no two parts of which are alike.
func report(characters int) string {
	var b strings.Builder
	for i := 0; b.Len() < 4*characters; i++ {
		fmt.Fprintf(&b, "第 %d 行: 磁盘 /dev/sd%d 已用 %d%%。\n", i, i, i%100)
	}
	return string([]rune(b.String())[:characters])
}

// cutRunes is the first and the last n characters of a text.
func cutRunes(text string, n int) (head, end string) {
	rs := []rune(text)
	n = min(n, len(rs))
	return string(rs[:n]), string(rs[len(rs)-n:])
}

func TestPrune(t *testing.T) {
	t.Parallel()
	p := Policies["balanced"]
	var tail []sessions.Event
	for i, n := range []int{5000, 600, 100, 4001, 4000, 5000} { // the last three turns are recent
		tail = append(tail, asked(int64(4*i+1), "disk_usage", report(n))...)
	}
	tail[22].Blob = "moved" // a result of the last turn
	shown := map[int64]sessions.Shown{}
	for _, s := range p.Prune(tail, compactiontest.Counter().Count) {
		shown[s.Seq] = s
		if s.Tokens != compactiontest.Counter().Count(s.Text) || s.Blob != "" {
			t.Errorf("event %d: %+v", s.Seq, s)
		}
		for _, want := range []string{fmt.Sprintf(`query_history {"range":"%d"} reads the whole`, s.Seq), "disk_usage", "Do not repeat the same call unchanged"} {
			if !strings.Contains(s.Text, want) {
				t.Errorf("event %d is shown without %q: %s", s.Seq, want, s.Text[:100])
			}
		}
	}
	if len(shown) != 3 {
		t.Errorf("%d results are shortened, want 3", len(shown))
	}
	for seq, ends := range map[int64]bool{3: false, 7: false, 15: true} {
		whole := tail[seq-1].Content
		head, end := cutRunes(whole, 1500)
		if got := strings.Contains(shown[seq].Text, head) && strings.HasSuffix(shown[seq].Text, end); got != ends {
			t.Errorf("event %d keeps its ends: %v, want %v", seq, got, ends)
		}
	}
	for _, mode := range []Mode{SummaryOnly, OffloadThenCompact} {
		if p.Mode = mode; p.Prune(tail, compactiontest.Counter().Count) != nil {
			t.Errorf("mode %s prunes", mode)
		}
	}
}

// P82: a shortened result stays as it is while the conversation goes on. Only results are shortened; they become
// clearly smaller, and name their event.
func TestPruningSticks(t *testing.T) {
	t.Parallel()
	tools := rapid.SampledFrom([]string{"disk_usage", "memory_get", "a\nb", strings.Repeat("长", 300)})
	text := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 9000), report),
		rapid.Map(rapid.IntRange(0, 9000), func(n int) string { return strings.Repeat("a", n) }),
		rapid.Map(rapid.IntRange(0, 9000), func(n int) string { return "[Event 3: result of x]" + report(n) }),
	)
	p := Policies["balanced"]
	p.Mode = PruneOnly
	rapid.Check(t, func(t *rapid.T) {
		var tail []sessions.Event
		seen := map[int64]string{}
		for i := range rapid.IntRange(1, 8).Draw(t, "turns") {
			tail = append(tail, asked(int64(4*i+1), tools.Draw(t, "tool"), text.Draw(t, "result"))...)
			shown := p.Prune(tail, compactiontest.Counter().Count)
			before := tail
			tail = show(tail, shown)
			for _, s := range shown {
				e := before[s.Seq-1]
				if was, again := seen[s.Seq]; again {
					t.Fatalf("event %d is shortened again, from %.80q", s.Seq, was)
				}
				if seen[s.Seq] = s.Text; e.Role != sessions.RoleTool || e.Tokens-s.Tokens < pruneGain || utf8.RuneCountInString(s.Text) > pruneOver {
					t.Fatalf("event %d of %d tokens is shown with %d", s.Seq, e.Tokens, s.Tokens)
				}
			}
		}
		for _, e := range tail {
			if text, ok := seen[e.Seq]; ok && e.Content != text {
				t.Fatalf("event %d has changed", e.Seq)
			}
		}
		if again := p.Prune(tail, compactiontest.Counter().Count); len(again) != 0 {
			t.Fatalf("%d results are shortened twice", len(again))
		}
	})
}

func TestOffload(t *testing.T) {
	t.Parallel()
	p := Policies["offload"]
	large, small := report(6000), report(300)
	s := State{Tokens: 56000} // 0.7 of the trigger
	for i, e := range []struct{ tool, result string }{
		{"web_fetch", large},
		{"web_fetch", small},
		{"memory_get", large}, // memory_get reads a result that was moved out
		// P72
		{"shell", "Tool result is at: /etc/passwd\n" + large},
		{"query_history", large}, // memory_get reads it in pages, which stay
	} {
		s.Tail = append(s.Tail, asked(int64(4*i+1), e.tool, e.result)...)
	}
	shown, freed := p.Offload(seed, s, compactiontest.Counter().Count)
	if len(shown) != 3 || shown[0].Seq != 3 || shown[1].Seq != 15 || shown[2].Seq != 19 {
		t.Fatalf("moved out: %+v", shown)
	}
	for _, one := range shown {
		whole := s.Tail[one.Seq-1]
		freed -= whole.Tokens - one.Tokens
		first, rest, _ := strings.Cut(one.Text, "\n")
		if blob := sessions.BlobOf(whole.Content); one.Blob != blob || first != "Tool result is at: "+sessions.BlobPath(blob) {
			t.Errorf("event %d: %q at %s", one.Seq, first, one.Blob)
		}
		for _, want := range []string{whole.ToolName, fmt.Sprint(len(whole.Content)), "memory_get", string([]rune(whole.Content)[:8])} {
			if !strings.Contains(rest, want) {
				t.Errorf("event %d lacks %q: %s", one.Seq, want, rest)
			}
		}
	}
	if freed != 0 {
		t.Errorf("the freed size is off by %d tokens", freed)
	}
	if need := p.Decide(seed, s); need.Trigger != TriggerOffload {
		t.Errorf("large results at 0.7 of the trigger: %+v", need)
	}
	after := s
	after.Tail = show(s.Tail, shown)
	if again, _ := p.Offload(seed, after, compactiontest.Counter().Count); len(again) != 0 || p.Decide(seed, after).Compact {
		t.Errorf("moved out again: %+v", again)
	}
	s.Tokens--
	if early, _ := p.Offload(seed, s, compactiontest.Counter().Count); len(early) != 0 || p.Decide(seed, s).Compact {
		t.Errorf("moved out too early: %+v", early)
	}
}

// A reference is smaller than the least that is moved out, whatever it refers to: moving out always gains room.
func TestOffloadGains(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := sessions.Event{Role: sessions.RoleTool, ToolName: rapid.String().Draw(t, "tool"), Content: strings.Repeat(rapid.StringN(1, 40, -1).Draw(t, "part"), 100)}
		if n := compactiontest.Counter().Count(referenceText(e)); n > leastOffload {
			t.Fatalf("a reference of %d tokens", n)
		}
	})
}

// P79: results that were moved out are enough when 15,000 tokens came free, or when the context is not over any more.
func TestStillDueAfterOffload(t *testing.T) {
	t.Parallel()
	p := Policies["offload"]
	for name, c := range map[string]struct {
		after, freed int
		due          bool
	}{
		"14,999 and still over":   {80000, 14999, true},
		"15,000 and still over":   {80000, 15000, false},
		"not over":                {79999, 0, false},
		"nothing, and still over": {90000, 0, true},
	} {
		if got := p.StillDue(seed, c.after, c.freed); got != c.due {
			t.Errorf("%s: %v", name, got)
		}
	}
}
