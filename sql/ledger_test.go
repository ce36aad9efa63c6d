package sql_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// statementCount counts the statements with a word.
type statementCount struct {
	word string
	n    atomic.Int64
}

// TraceQueryStart implements pgx.QueryTracer.
func (c *statementCount) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, c.word) {
		c.n.Add(1)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (c *statementCount) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func tokensToday(t *testing.T, s *sql.Store) int {
	t.Helper()
	return must[sessions.Used](t)(s.Used(t.Context(), sessions.Askers{Robot: robot})).Tokens.Count
}

// The tokens of a day and their cost stay when a person deletes all about them, and when a conversation is deleted, without
// the person's name. The person's own day goes on, too.
func TestLedgerOutlivesErasures(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(*sql.Store, sessions.Key) error{
		"the person": func(s *sql.Store, _ sessions.Key) error {
			_, err := s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: "u1", Self: true})
			return err
		},
		"the conversation": func(s *sql.Store, key sessions.Key) error {
			_, err := s.Delete(t.Context(), key)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t, sqltest.URL(t))
			c := newChat(t, s, "cid", "u1", true)
			c.exchange("u1", "hello", "hi")
			execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = $1", sessions.Private)
			execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, model, person, turns, prompt_tokens, completion_tokens, cost)
				VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 'turn', 'qwen', 'u1', 3, 400, 100, 0.5), ($1, '2026-01-02', 'turn', 'qwen', 'u1', 1, 40, 10, 0.25)`, c.reader.Key)
			for _, kind := range []sessions.SpentKind{sessions.SpentFlush, sessions.SpentSummary} {
				if err := s.Charge(t.Context(), c.reader.Key, sessions.Spending{Kind: kind, Model: "small", Usage: sessions.Usage{Prompt: 50}, Cost: 0.125}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.SpendTokens(t.Context(), robot, map[sessions.UserID]int{"u1": 500}); err != nil {
				t.Fatal(err)
			}
			since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			before := must[[]pages.Cost](t)(s.Pages().Costs(t.Context(), nil, since, false))
			if err := erase(s, c.reader.Key); err != nil {
				t.Fatal(err)
			}
			if n := tokensToday(t, s); n != 600 {
				t.Errorf("the day has %d tokens, want 600 as before", n)
			}
			after := must[[]pages.Cost](t)(s.Pages().Costs(t.Context(), nil, since, false))
			if !slices.Equal(before, after) || len(after) != 4 {
				t.Errorf("costs are %+v, want %+v", after, before)
			}
			used := must[sessions.Used](t)(s.Used(t.Context(), sessions.Askers{Robot: robot, People: []sessions.UserID{"u1"}}))
			if used.PersonTokens.Count != 500 {
				t.Errorf("the person used %d tokens of the day, want 500", used.PersonTokens.Count)
			}
			if n := number(t, pool, "SELECT count(*) FROM model_usage WHERE person <> '' OR session_key = $1", c.reader.Key); n != 0 {
				t.Errorf("%d rows name the person or the conversation", n)
			}
			// A call that ran during the erasure.
			if err := s.Charge(t.Context(), c.reader.Key, sessions.Spending{Kind: sessions.SpentTurn, Usage: sessions.Usage{Prompt: 7}}); err != nil {
				t.Fatal(err)
			}
			if n := tokensToday(t, s); n != 607 {
				t.Errorf("the day has %d tokens, want those of the call during the erasure as well", n)
			}
		})
	}
}

// The tokens of many askers are one pipeline.
func TestTokensOfAskersAreOnePipeline(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := open(t, url)
	k := &killer{pool: pool}
	s := openTraced(t, url, 1, k)
	for n := range 2 { // the first one reads the key of the day
		k.seen = nil
		if err := s.SpendTokens(t.Context(), robot, map[sessions.UserID]int{"u1": 10, "u2": 20, "u3": 30}); err != nil {
			t.Fatal(err)
		}
		if n > 0 && len(k.seen) != 1 {
			t.Errorf("three askers took %q", k.seen)
		}
	}
	if n := number(t, pool, "SELECT sum(used) FROM limit_windows"); n != 120 {
		t.Errorf("%d tokens are counted, want 120", n)
	}
}

// A day with much usage is summed now and then. The own tokens count at once, and another replica's at the next sum.
func TestDayOfMuchUsage(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := open(t, url)
	sums := &statementCount{word: "-- name: SpendDay"}
	s := openTraced(t, url, 4, sums)
	c := newChat(t, s, "cid", "u1", false)
	execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, person, prompt_tokens)
		SELECT $1, (now() AT TIME ZONE 'UTC')::date, 'turn', 'p' || i, 1 FROM generate_series(1, 2000) i`, c.reader.Key)
	if n := tokensToday(t, s); n != 2000 {
		t.Fatalf("the day has %d tokens", n)
	}
	before, began := sums.n.Load(), time.Now()
	if err := s.Charge(t.Context(), c.reader.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: sessions.Usage{Prompt: 20, Completion: 3}}); err != nil {
		t.Fatal(err)
	}
	if n := tokensToday(t, s); n != 2023 {
		t.Errorf("the day has %d tokens, want the own ones at once", n)
	}
	limit := sessions.Limits{Tokens: 2023}
	for range 20 {
		r := must[[]sessions.Reached](t)(s.Admit(t.Context(), limit, sessions.Askers{Robot: robot, People: []sessions.UserID{"u1"}}))
		if len(r) != 1 || r[0].Limit != sessions.AllTokens {
			t.Fatalf("the turn met %+v", r)
		}
	}
	if n := sums.n.Load() - before; n > 1+int64(time.Since(began)/time.Second) {
		t.Errorf("20 turns summed the day %d times", n)
	}
	execute(t, pool, "UPDATE model_usage SET prompt_tokens = prompt_tokens + 1 WHERE kind = 'flush'")
	for deadline := time.Now().Add(time.Minute); tokensToday(t, s) != 2024; {
		if time.Now().After(deadline) {
			t.Fatal("the tokens of another replica are not counted")
		}
	}
}

// The long words of one person cost the other askers of their turn nothing.
func TestMergedTurnLendsNoTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens    int
		own, want []int
	}{
		{1000, []int{10, 900}, []int{55, 945}},
		{1001, []int{0, 0}, []int{501, 500}},
		{100, []int{10, 990}, []int{1, 99}},
		{7, []int{5, 5, 5}, []int{3, 2, 2}},
		{0, []int{5, 5}, []int{0, 0}},
		{9, []int{3}, []int{9}},
		{9, nil, []int{}},
	} {
		if got := sessions.SharesOf(c.tokens, c.own); !slices.Equal(got, c.want) {
			t.Errorf("%d tokens of the words %v are divided as %v, want %v", c.tokens, c.own, got, c.want)
		}
	}
}
