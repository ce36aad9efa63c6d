package spend_test

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
	"ebb/sql/storetest"
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
	return storetest.Must[sessions.Used](t)(s.Limits.Used(t.Context(), sessions.Askers{Robot: storetest.Robot})).Tokens.Count
}

// The tokens of a day and their cost stay when a person deletes all about them, and when a conversation is deleted, without
// the person's name. The person's own day goes on, too.
func TestLedgerOutlivesErasures(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(*sql.Store, sessions.Key) error{
		"the person": func(s *sql.Store, _ sessions.Key) error {
			_, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: "u1", Self: true})
			return err
		},
		"the conversation": func(s *sql.Store, key sessions.Key) error {
			_, err := s.Erasure.Delete(t.Context(), key)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", "u1", true)
			c.Exchange("u1", "hello", "hi")
			storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = $1", sessions.Private)
			storetest.Execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, model, person, turns, prompt_tokens, completion_tokens, cost)
				VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 'turn', 'qwen', 'u1', 3, 400, 100, 0.5), ($1, '2026-01-02', 'turn', 'qwen', 'u1', 1, 40, 10, 0.25)`, c.Reader.Key)
			for _, kind := range []sessions.SpentKind{sessions.SpentFlush, sessions.SpentSummary} {
				if err := s.Ledger.Charge(t.Context(), c.Reader.Key, sessions.Spending{Kind: kind, Model: "small", Usage: sessions.Usage{Prompt: 50}, Cost: 0.125}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Limits.SpendTokens(t.Context(), storetest.Robot, map[sessions.UserID]int{"u1": 500}); err != nil {
				t.Fatal(err)
			}
			since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			before := storetest.Must[[]pages.Usage](t)(s.Pages().Costs(t.Context(), nil, since, false))
			if err := erase(s, c.Reader.Key); err != nil {
				t.Fatal(err)
			}
			if n := tokensToday(t, s); n != 600 {
				t.Errorf("the day has %d tokens, want 600 as before", n)
			}
			after := storetest.Must[[]pages.Usage](t)(s.Pages().Costs(t.Context(), nil, since, false))
			if !slices.Equal(before, after) || len(after) != 4 {
				t.Errorf("costs are %+v, want %+v", after, before)
			}
			used := storetest.Must[sessions.Used](t)(s.Limits.Used(t.Context(), sessions.Askers{Robot: storetest.Robot, People: []sessions.UserID{"u1"}}))
			if used.PersonTokens.Count != 500 {
				t.Errorf("the person used %d tokens of the day, want 500", used.PersonTokens.Count)
			}
			if n := storetest.Number(t, pool, "SELECT count(*) FROM model_usage WHERE person <> '' OR session_key = $1", c.Reader.Key); n != 0 {
				t.Errorf("%d rows name the person or the conversation", n)
			}
			// A call that ran during the erasure.
			if err := s.Ledger.Charge(t.Context(), c.Reader.Key, sessions.Spending{Kind: sessions.SpentTurn, Usage: sessions.Usage{Prompt: 7}}); err != nil {
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
	_, pool := storetest.Open(t, url)
	k := &storetest.Killer{Pool: pool}
	s := storetest.OpenTraced(t, url, 1, k)
	for n := range 2 { // the first one reads the key of the day
		k.Seen = nil
		if err := s.Limits.SpendTokens(t.Context(), storetest.Robot, map[sessions.UserID]int{"u1": 10, "u2": 20, "u3": 30}); err != nil {
			t.Fatal(err)
		}
		if n > 0 && len(k.Seen) != 1 {
			t.Errorf("three askers took %q", k.Seen)
		}
	}
	if n := storetest.Number(t, pool, "SELECT sum(used) FROM limit_windows"); n != 120 {
		t.Errorf("%d tokens are counted, want 120", n)
	}
}

// A day with much usage is summed now and then. The own tokens count at once, and another replica's at the next sum.
func TestDayOfMuchUsage(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := storetest.Open(t, url)
	sums := &statementCount{word: "-- name: SpendDay"}
	s := storetest.OpenTraced(t, url, 4, sums)
	c := storetest.NewChat(t, s, "cid", "u1", false)
	storetest.Execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, person, prompt_tokens)
		SELECT $1, (now() AT TIME ZONE 'UTC')::date, 'turn', 'p' || i, 1 FROM generate_series(1, 2000) i`, c.Reader.Key)
	if n := tokensToday(t, s); n != 2000 {
		t.Fatalf("the day has %d tokens", n)
	}
	before, began := sums.n.Load(), time.Now()
	if err := s.Ledger.Charge(t.Context(), c.Reader.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: sessions.Usage{Prompt: 20, Completion: 3}}); err != nil {
		t.Fatal(err)
	}
	if n := tokensToday(t, s); n != 2023 {
		t.Errorf("the day has %d tokens, want the own ones at once", n)
	}
	limit := sessions.Limits{Tokens: 2023}
	for range 20 {
		r := storetest.Must[[]sessions.Reached](t)(s.Limits.Admit(t.Context(), limit, sessions.Askers{Robot: storetest.Robot, People: []sessions.UserID{"u1"}}))
		if len(r) != 1 || r[0].Limit != sessions.AllTokens {
			t.Fatalf("the turn met %+v", r)
		}
	}
	if n := sums.n.Load() - before; n > 1+int64(time.Since(began)/time.Second) {
		t.Errorf("20 turns summed the day %d times", n)
	}
	storetest.Execute(t, pool, "UPDATE model_usage SET prompt_tokens = prompt_tokens + 1 WHERE kind = 'flush'")
	for deadline := time.Now().Add(time.Minute); tokensToday(t, s) != 2024; {
		if time.Now().After(deadline) {
			t.Fatal("the tokens of another replica are not counted")
		}
	}
}
