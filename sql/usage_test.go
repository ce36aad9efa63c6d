package sql_test

import (
	"slices"
	"testing"
	"time"

	"ebb/memory"
	"ebb/pages"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

// A turn's usage is shared by its askers without a loss, under its model. A forgotten person has none, and the sums stay.
func TestUsageByPersonAndModel(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, state, content, sender_id, sender_nick, msg_id, message) VALUES
		($1, 'user', 'pending', 'a', 'u1', '张伟', 'm1', '{}'), ($1, 'user', 'pending', 'b', 'u2', '王芳', 'm2', '{}'), ($1, 'user', 'pending', 'c', 'u1', '张伟', 'm3', '{}')`, c.reader.Key)
	v, err := s.Begin(t.Context(), c.lease, 10)
	if err != nil || len(v.Pending) != 3 {
		t.Fatalf("%d messages wait (%v), want 3", len(v.Pending), err)
	}
	turn := sessions.Turn{Usage: sessions.Usage{Prompt: 101, Cached: 7, Completion: 3}, Cost: 0.5, Model: "qwen", TakenTokens: []int{1, 1, 1}}
	for _, e := range v.Pending {
		turn.Taken = append(turn.Taken, e.ID)
	}
	if _, err := s.Commit(t.Context(), c.lease, turn); err != nil {
		t.Fatal(err)
	}
	if err := s.Charge(t.Context(), c.reader.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: sessions.Usage{Prompt: 10}, Model: "small"}); err != nil {
		t.Fatal(err)
	}
	sums := func(by pages.UsageBy) []pages.Usage {
		t.Helper()
		list, err := s.Pages().Usage(t.Context(), time.Now().AddDate(0, 0, -1), by, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	want := []pages.Usage{
		{Person: "u1", Nick: "张伟", Spending: sessions.Spending{Usage: sessions.Usage{Prompt: 51, Cached: 4, Completion: 2}, Cost: 0.25}},
		{Person: "u2", Nick: "王芳", Spending: sessions.Spending{Usage: sessions.Usage{Prompt: 50, Cached: 3, Completion: 1}, Cost: 0.25}},
		{Spending: sessions.Spending{Usage: sessions.Usage{Prompt: 10}}},
	}
	if got := sums(pages.UsageBy{Person: true}); !slices.Equal(got, want) {
		t.Errorf("by person the usage is %+v, want %+v", got, want)
	}
	models := []pages.Usage{
		{Spending: sessions.Spending{Model: "qwen", Usage: turn.Usage, Cost: 0.5}}, {Spending: sessions.Spending{Model: "small", Usage: sessions.Usage{Prompt: 10}}},
	}
	if got := sums(pages.UsageBy{Model: true}); !slices.Equal(got, models) {
		t.Errorf("by model the usage is %+v, want %+v", got, models)
	}
	if _, err := s.ForgetPerson(t.Context(), memory.Forget{Person: "u1"}); err != nil {
		t.Fatal(err)
	}
	want[0].Person, want[0].Nick, want[0].Usage.Prompt = "", "", 61
	want = want[:2]
	if got := sums(pages.UsageBy{Person: true}); !slices.Equal(got, want) {
		t.Errorf("after a person is forgotten the usage is %+v, want %+v", got, want)
	}
	if got := sums(pages.UsageBy{Model: true}); !slices.Equal(got, models) {
		t.Errorf("after a person is forgotten the usage by model is %+v, want %+v", got, models)
	}
}
