package compactions_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// viewOf is the view of a turn as text: cursor, pinned memory, summaries and tail.
func viewOf(t *testing.T, c *storetest.Chat) string {
	t.Helper()
	v := storetest.Must[sessions.View](t)(c.Store.Turns.Begin(t.Context(), c.Lease, 1))
	out := fmt.Sprintln(v.Session.CompactedSeq, v.Session.Pinned)
	for _, s := range v.Summaries {
		out += fmt.Sprintln(s.StartSeq, s.EndSeq, s.Level, s.Text, s.Tokens)
	}
	for _, e := range v.Tail {
		out += fmt.Sprintln(e.Seq, e.Role, e.Content, e.Tokens, e.Blob)
	}
	return out
}

// Law: undos take compactions back one by one, in reverse, each to the view from before it. The compactions summarize, roll up, pin and
// move results out, and their ranges end anywhere.
func TestUndosLeadBackThroughAllViews(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		c := storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprint("cid", runs)), "u", false)
		for i := range rapid.IntRange(1, 3).Draw(rt, "results") {
			c.Result(fmt.Sprint("result ", i))
		}
		var before []string
		for range rapid.IntRange(1, 5).Draw(rt, "compactions") {
			v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 1))
			from, last := v.Session.CompactedSeq, v.Session.LastSeq
			done := storetest.SummaryOf(from, rapid.Int64Range(from, last).Draw(rt, "through"), fmt.Sprint("so far ", len(before)))
			if done.Through == from { // events of the tail are moved out
				done.Summaries = nil
			} else if len(v.Summaries) > 0 && rapid.Bool().Draw(rt, "rolls up") {
				done.Summaries = append(done.Summaries, sessions.NewSummary{StartSeq: v.Summaries[0].StartSeq, EndSeq: done.Through, Text: "all", Tokens: 2, Level: 1})
			}
			for _, e := range v.Tail {
				if e.Seq > done.Through && e.Role == sessions.RoleTool && e.Blob == "" && rapid.Bool().Draw(rt, "moves") {
					done.Shown = append(done.Shown, sessions.Shown{Seq: e.Seq, Text: "moved", Tokens: 1, Blob: sessions.BlobOf(e.Content)})
				}
			}
			if rapid.Bool().Draw(rt, "pins") {
				done.Pinned = &sessions.Pinned{Text: fmt.Sprint("pinned ", len(before))}
			}
			if done.Through == from && len(done.Shown) == 0 {
				continue
			}
			before = append(before, viewOf(t, c))
			storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, done))
		}
		for i, want := range slices.Backward(before) {
			if _, err := s.Compactions.Undo(t.Context(), c.Lease, 0, 0); err != nil {
				rt.Fatalf("undo of compaction %d: %v", i, err)
			}
			if got := viewOf(t, c); got != want {
				rt.Fatalf("after the undo of compaction %d the view is\n%s\nwant\n%s", i, got, want)
			}
		}
		if _, err := s.Compactions.Undo(t.Context(), c.Lease, 0, 0); !errors.Is(err, sessions.ErrNotFound) {
			rt.Fatalf("one undo more gave %v", err)
		}
	})
}

// An administrator undoes the newest compaction only, without the lease: the turn in progress goes on.
func TestUndoByAnAdministrator(t *testing.T) {
	t.Parallel()
	s, _, c := storetest.OpenChat(t)
	undo := func(id int64) (sessions.LogEntry, error) {
		return s.Compactions.UndoCompaction(t.Context(), c.Reader.Key, id, "cli:root", 5)
	}
	if _, err := undo(0); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("an undo of nothing gave %v", err)
	}
	if _, err := s.Compactions.UndoCompaction(t.Context(), "r/missing", 0, "cli:root", 5); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("an undo in no session gave %v", err)
	}
	before := viewOf(t, c)
	compact := func(c *storetest.Chat, from, through int64) (id int64) {
		t.Helper()
		storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(from, through, "so far")))
		return storetest.Must[[]sessions.LogEntry](t)(s.Compactions.Compactions(t.Context(), c.Reader.Key, 1))[0].ID
	}
	first := compact(c, 0, 1)
	between := viewOf(t, c)
	second := compact(c, 1, 2)
	if _, err := undo(first); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("an undo of an older compaction gave %v", err)
	}
	for _, step := range []struct {
		id   int64
		want string
	}{{second, between}, {0, before}} {
		e := storetest.Must[sessions.LogEntry](t)(undo(step.id))
		if e.Trigger != "undo" || e.RequestedBy != "cli:root" || e.Key != c.Reader.Key {
			t.Errorf("the undo is logged as %+v", e)
		}
		if got := viewOf(t, c); got != step.want {
			t.Errorf("the view is\n%s\nwant\n%s", got, step.want)
		}
	}
	if _, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "x"}}}); err != nil {
		t.Errorf("the turn in progress: %v", err)
	}
}
