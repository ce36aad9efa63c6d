package spend_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A turn's usage is shared by its askers without a loss, under its model. Each has the own words, and an equal part of the rest. A forgotten person has none, and the sums stay.
func TestUsageByPersonAndModel(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, state, content, sender_id, sender_nick, msg_id, message) VALUES
		($1, 'user', 'pending', 'a', 'u1', '张伟', 'm1', '{}'), ($1, 'user', 'pending', 'b', 'u2', '王芳', 'm2', '{}'), ($1, 'user', 'pending', 'c', 'u1', '张伟', 'm3', '{}')`, c.Reader.Key)
	v, err := s.Turns.Begin(t.Context(), c.Lease, 10)
	if err != nil || len(v.Pending) != 3 {
		t.Fatalf("%d messages wait (%v), want 3", len(v.Pending), err)
	}
	turn := sessions.TurnResult{Spent: sessions.Spending{Usage: sessions.Usage{Prompt: 101, Cached: 7, Completion: 3}, Cost: 0.5, Model: "qwen"}, TakenTokens: []int{1, 1, 1}}
	for _, e := range v.Pending {
		turn.Taken, turn.Askers = append(turn.Taken, e.ID), append(turn.Askers, e.SenderID)
	}
	if _, err := s.Turns.Commit(t.Context(), c.Lease, turn); err != nil {
		t.Fatal(err)
	}
	if err := s.Ledger.Charge(t.Context(), c.Reader.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: sessions.Usage{Prompt: 10}, Model: "small"}); err != nil {
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
		{Person: "u1", Nick: "张伟", Turns: 1, Spending: sessions.Spending{Usage: sessions.Usage{Prompt: 51, Cached: 4, Completion: 2}, Cost: 0.5 * 53 / 104}},
		{Person: "u2", Nick: "王芳", Spending: sessions.Spending{Usage: sessions.Usage{Prompt: 50, Cached: 3, Completion: 1}, Cost: 0.5 * 51 / 104}},
		{Spending: sessions.Spending{Usage: sessions.Usage{Prompt: 10}}},
	}
	if got := sums(pages.UsageBy{Person: true}); !slices.Equal(got, want) {
		t.Errorf("by person the usage is %+v, want %+v", got, want)
	}
	models := []pages.Usage{
		{Turns: 1, Spending: sessions.Spending{Model: "qwen", Usage: turn.Spent.Usage, Cost: 0.5}}, {Spending: sessions.Spending{Model: "small", Usage: sessions.Usage{Prompt: 10}}},
	}
	if got := sums(pages.UsageBy{Model: true}); !slices.Equal(got, models) {
		t.Errorf("by model the usage is %+v, want %+v", got, models)
	}
	if _, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Person: "u1"}); err != nil {
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

// Work besides answers has its model too, also if it failed.
func TestUsageOfUpkeepByModel(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	c.Exchange("u1", "早", "早")
	storetest.Execute(t, pool, "INSERT INTO memory_digests (session_key, day) VALUES ($1, '2026-11-20'), ($1, '2026-11-21')", c.Reader.Key)
	used := sessions.Usage{Prompt: 10, Completion: 1}
	for _, err := range []error{
		s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: 2, Failures: 1, Usage: used, Model: "flush"}),
		s.Digests.PutOffDigest(t.Context(), c.Lease, memory.DigestFailure{Date: "2026-11-20", Usage: used, Model: "digest failed"}),
		s.Compactions.Log(t.Context(), c.Lease, sessions.LogEntry{Outcome: "failed", Usage: used, Model: "summary"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d := storetest.DigestOf(c, "决定周五发布")
	d.Date, d.EndSeq, d.Usage, d.Model = "2026-11-21", 2, used, "digest"
	storetest.Must[int64](t)(s.Digests.StoreDigest(t.Context(), c.Lease, d))
	if got, want := storetest.Collect(t, pool, "SELECT model FROM model_usage WHERE prompt_tokens = 10 ORDER BY model", pgx.RowTo[string]), []string{"digest", "digest failed", "flush", "summary"}; !slices.Equal(got, want) {
		t.Errorf("the usage is of %q, want %q", got, want)
	}
}

// A turn that a model answered counts once, by its commit: not a message without an answer, an answer without a model, or spending
// without a turn. An older replica, which does not know the column, changes no count.
func TestTurnsOfADay(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	key := c.Reader.Key
	used := sessions.Usage{Prompt: 10, Completion: 1}
	for i, turn := range []sessions.TurnResult{{Spent: sessions.Spending{Usage: used}}, {Spent: sessions.Spending{Usage: used, Model: "small"}}, {}, {Spent: sessions.Spending{Usage: used}}} {
		id := storetest.Collect(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, state, content, sender_id, msg_id, message)
			VALUES ($1, 'user', 'pending', 'a', 'u1', 'turn' || $2::int, '{}') RETURNING id`, pgx.RowTo[int64], key, i)
		turn.Taken, turn.TakenTokens, turn.Askers = id, []int{1}, []sessions.UserID{"u1"}
		if i == 3 {
			turn.Taken, turn.TakenTokens, turn.Askers, turn.Dead = nil, nil, nil, id
		}
		if _, err := s.Turns.Begin(t.Context(), c.Lease, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Turns.Commit(t.Context(), c.Lease, turn); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []sessions.SpentKind{sessions.SpentTurn, sessions.SpentFlush} {
		if err := s.Ledger.Charge(t.Context(), key, sessions.Spending{Kind: kind, Usage: used}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Execute(t, pool, `INSERT INTO model_usage AS u (session_key, day, kind, prompt_tokens) VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 'turn', 5)
		ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens`, key)
	turns := map[sessions.SpentKind]int{}
	for _, one := range storetest.Must[[]pages.Usage](t)(s.Pages().Costs(t.Context(), nil, time.Now().AddDate(0, 0, -1), false)) {
		turns[one.Kind] += one.Turns
	}
	if turns[sessions.SpentTurn] != 2 || turns[sessions.SpentFlush] != 0 {
		t.Errorf("turns are %v, want 2 of the turns and 0 of the flush", turns)
	}
	n := 0
	for _, one := range storetest.Must[[]pages.Usage](t)(s.Pages().Usage(t.Context(), time.Now().AddDate(0, 0, -1), pages.UsageBy{Model: true, Person: true}, 10)) {
		n += one.Turns
	}
	if n != 2 {
		t.Errorf("usage by model and person has %d turns, want 2", n)
	}
}
