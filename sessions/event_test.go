package sessions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// Law: usage and costs add up field by field, in any order.
func TestSpendingsAddUp(t *testing.T) {
	t.Parallel()
	usage := rapid.Custom(func(t *rapid.T) sessions.Usage {
		n := rapid.IntRange(0, 1<<30)
		return sessions.Usage{Prompt: n.Draw(t, "prompt"), Cached: n.Draw(t, "cached"), Completion: n.Draw(t, "completion")}
	})
	rapid.Check(t, func(t *rapid.T) {
		u, v, w := usage.Draw(t, "u"), usage.Draw(t, "v"), usage.Draw(t, "w")
		if u.Add(v) != v.Add(u) || u.Add(v).Add(w) != u.Add(v.Add(w)) || u.Add(sessions.Usage{}) != u {
			t.Fatalf("%+v, %+v and %+v do not add up", u, v, w)
		}
		if sum := u.Add(v); sum.Prompt != u.Prompt+v.Prompt || sum.Cached != u.Cached+v.Cached || sum.Completion != u.Completion+v.Completion {
			t.Fatalf("%+v and %+v are %+v", u, v, sum)
		}
		a := sessions.Spending{Kind: sessions.SpentFlush, Usage: u, Cost: 2, Model: "m"}
		if s := a.Add(sessions.Spending{Kind: sessions.SpentTurn, Usage: v, Cost: 3, Model: "n"}); s.Kind != sessions.SpentTurn || s.Usage != u.Add(v) || s.Cost != 5 || s.Model != "" {
			t.Fatalf("the sum is %+v", s)
		}
	})
}

func TestUpkeepIsWhatNoPersonAskedFor(t *testing.T) {
	t.Parallel()
	for kind, want := range map[sessions.SpentKind]bool{
		sessions.SpentTurn: false, sessions.SpentProbe: false, sessions.SpentFlush: true, sessions.SpentSummary: true, sessions.SpentDigest: true,
		sessions.SpentConsolidation: true,
	} {
		if got := kind.IsUpkeep(); got != want {
			t.Errorf("%s is upkeep: %v", kind, got)
		}
	}
}

// A reference to events is a call that the tool accepts as it is.
func TestReferencesAreCalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(1, 1<<40).Draw(t, "from")
		through := from + rapid.Int64Range(0, 5).Draw(t, "more")
		name, call, _ := strings.Cut(sessions.ReadCallOf(from, through), " ")
		var arguments struct {
			Range string `json:"range"`
		}
		if err := json.Unmarshal([]byte(call), &arguments); err != nil || name != sessions.HistoryTool {
			t.Fatalf("%s %s: %v", name, call, err)
		}
		want := fmt.Sprint(from)
		if through > from {
			want = fmt.Sprintf("%d-%d", from, through)
		}
		if arguments.Range != want {
			t.Fatalf("the range is %q, want %q", arguments.Range, want)
		}
	})
	if sessions.ReadCall(7) != sessions.ReadCallOf(7, 7) {
		t.Error("one event has two references")
	}
}

// A write that surely changed nothing is not repeated; any other error may hide a success.
func TestFinalErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{sessions.ErrLeaseLost, sessions.ErrConflict, sessions.ErrRefused} {
		if !sessions.IsFinal(fmt.Errorf("commit: %w", err)) {
			t.Errorf("%v is repeated", err)
		}
	}
	for _, err := range []error{nil, errors.New("x"), sessions.ErrLeaseHeld, sessions.ErrNotFound} {
		if sessions.IsFinal(err) {
			t.Errorf("%v is not repeated", err)
		}
	}
}

func TestRolesAreKnown(t *testing.T) {
	t.Parallel()
	for role, want := range map[sessions.Role]bool{
		sessions.RoleUser: true, sessions.RoleAssistant: true, sessions.RoleTool: true, sessions.RoleSummary: true, "": false, "system": false, "User": false,
	} {
		if got := role.Known(); got != want {
			t.Errorf("role %q is known: %v", role, got)
		}
	}
}

// The range of a compaction is what an undo restores: the events behind the cursor, or those of the summaries that it rewrites.
func TestRangeOfACompaction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		compaction sessions.Compaction
		start, end int64
	}{
		{sessions.Compaction{From: 0, Through: 9, Summaries: []sessions.NewSummary{{StartSeq: 1, EndSeq: 9}}}, 1, 9},
		{sessions.Compaction{From: 4, Through: 9, Summaries: []sessions.NewSummary{{StartSeq: 5, EndSeq: 9}, {StartSeq: 1, EndSeq: 9, Level: 1}}}, 5, 9},
		{sessions.Compaction{From: 9, Through: 9, Summaries: []sessions.NewSummary{{StartSeq: 5, EndSeq: 7}, {StartSeq: 2, EndSeq: 4}}}, 2, 9},
		{sessions.Compaction{From: 9, Through: 9}, 10, 9},
	} {
		if start, end := c.compaction.Range(); start != c.start || end != c.end {
			t.Errorf("%+v: %d to %d, want %d to %d", c.compaction, start, end, c.start, c.end)
		}
	}
}

// A repeated command or call has the origin of the first, and no other one has.
func TestOriginsOfSchedules(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, message := range []sessions.MessageID{"m", "m1"} {
		for _, call := range []string{"", "1", "call 1"} {
			origin := sessions.OriginOf(message, call)
			if seen[origin] || origin != sessions.OriginOf(message, call) {
				t.Errorf("message %q, call %q: %q", message, call, origin)
			}
			seen[origin] = true
		}
	}
	at := time.Date(2026, 11, 20, 9, 5, 0, 0, time.UTC)
	for language, want := range map[string]string{"zh": "[定时 2026-11-20 09:05]\n", "": "[定时 2026-11-20 09:05]\n", "en": "[scheduled 2026-11-20 09:05]\n"} {
		if got := (sessions.Scheduled{DueAt: at, Lang: language}).Lead(); got != want {
			t.Errorf("%q: %q, want %q", language, got, want)
		}
	}
	if e := (sessions.Event{Message: &sessions.Message{Scheduled: &sessions.Scheduled{}}}); !e.IsScheduled() || (sessions.Event{Message: &sessions.Message{}}).IsScheduled() || (sessions.Event{}).IsScheduled() {
		t.Error("a message of a schedule is taken for a person's, or the reverse")
	}
}
