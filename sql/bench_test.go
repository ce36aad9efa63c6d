package sql_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// BenchmarkTurn is the store's part of a turn: accept, begin, commit and settle, by the length of the summarized
// history. The cost must not depend on it.
func BenchmarkTurn(b *testing.B) {
	for _, events := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("history=%d", events), func(b *testing.B) {
			s, l := benchSession(b, sqltest.URL(b), events)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				benchTurn(b, s, l, n)
			}
		})
	}
}

// BenchmarkDurableCommit is the yardstick for it: one row, one commit.
func BenchmarkDurableCommit(b *testing.B) {
	pool, err := pgxpool.New(b.Context(), sqltest.URL(b))
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	for b.Loop() {
		if _, err := pool.Exec(b.Context(), "INSERT INTO tool_runs (session_key, event_id, call_id, name, arguments) SELECT 'k', count(*), 'c', 'n', '' FROM tool_runs WHERE false ON CONFLICT DO NOTHING"); err != nil {
			b.Fatal(err)
		}
	}
}

func benchSession(b *testing.B, url string, events int) (*sql.Store, sessions.Lease) {
	b.Helper()
	s, err := sql.Open(b.Context(), sql.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	if _, err := s.Leases.Beat(b.Context(), "a"); err != nil {
		b.Fatal(err)
	}
	a, err := s.Inbox.Accept(b.Context(), "a", "robot/cid", sessions.Message{ID: "first", Text: "hello"})
	if err != nil {
		b.Fatal(err)
	}
	t := sessions.TurnResult{Taken: []int64{a.EventID}, TakenTokens: []int{1}}
	for i := 1; i < events; i++ {
		t.Events = append(t.Events, sessions.Event{Role: sessions.RoleAssistant, Content: "an answer of some length, as they are", Tokens: 9})
	}
	if _, err := s.Turns.Commit(b.Context(), a.Lease, t); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Compactions.Compact(b.Context(), a.Lease, storetest.SummaryOf(0, int64(events), "what was said")); err != nil {
		b.Fatal(err)
	}
	return s, a.Lease
}

// benchTurn is one turn; every twentieth compacts, so that the tail stays short.
func benchTurn(b *testing.B, s *sql.Store, l sessions.Lease, n int) {
	b.Helper()
	ctx := b.Context()
	if _, err := s.Inbox.Accept(ctx, l.Owner, l.Key, sessions.Message{ID: sessions.MessageID(fmt.Sprint(n)), Text: "a question"}); err != nil {
		b.Fatal(err)
	}
	v, err := s.Turns.Begin(ctx, l, 20)
	if err != nil || len(v.Pending) != 1 {
		b.Fatalf("%d pending (%v)", len(v.Pending), err)
	}
	c, err := s.Turns.Commit(ctx, l, sessions.TurnResult{
		Taken: []int64{v.Pending[0].ID}, TakenTokens: []int{3}, ViewVersion: v.Session.ViewVersion,
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "an answer", Tokens: 3}},
		Reply:  &sessions.Reply{Text: "an answer"},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Outbox.Settle(ctx, sessions.SendOutcome{Key: l.Key, ID: c.Replies[0].ID, Sent: true}); err != nil {
		b.Fatal(err)
	}
	if n%20 != 0 {
		return
	}
	rolling := storetest.SummaryOf(v.Session.CompactedSeq, c.LastSeq, "what was said")
	rolling.Summaries[0].StartSeq = 1
	if _, err := s.Compactions.Compact(ctx, l, rolling); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIndex is the index of a turn: a question and an answer of 25 Chinese characters each. A session's log is indexed 32 turns at a time.
// It reports the bytes in the server's log, without the pages that follow a checkpoint.
func BenchmarkIndex(b *testing.B) {
	for _, turns := range []int{32, 256, 2048, 16_384} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			url := sqltest.URL(b)
			s, l := benchSession(b, url, 1)
			pool, err := pgxpool.New(b.Context(), url)
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			r := rand.New(rand.NewPCG(1, 2))
			often := rand.NewZipf(r, 1.1, 8, 4999)
			var t sessions.TurnResult
			for range 2 * turns {
				var text strings.Builder
				for range 25 {
					text.WriteRune(rune(0x4e00 + often.Uint64()))
				}
				t.Events = append(t.Events, sessions.Event{Role: sessions.RoleAssistant, Content: text.String(), Tokens: 9})
			}
			if _, err := s.Turns.Commit(b.Context(), l, t); err != nil {
				b.Fatal(err)
			}
			wal := func() (n int64) {
				if err := pool.QueryRow(b.Context(), "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&n); err != nil {
					b.Fatal(err)
				}
				return n
			}
			before, began := wal(), time.Now()
			for n := 1; n > 0; {
				if n, err = s.Index.Logs.IndexSession(b.Context(), l.Key, 64); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(wal()-before)/float64(turns), "wal-B/turn")
			b.ReportMetric(float64(time.Since(began).Microseconds())/float64(turns), "µs/turn")
			b.ReportMetric(0, "ns/op")
		})
	}
}
