package sql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

// killer ends a connection's server process before the statement with the number that left has come down to.
type killer struct {
	pool *pgxpool.Pool
	left int // 0: never
	seen []string
	err  error
}

// TraceQueryStart implements pgx.QueryTracer.
func (k *killer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	k.seen = append(k.seen, data.SQL)
	if k.left--; k.left == 0 {
		_, k.err = k.pool.Exec(ctx, "SELECT pg_terminate_backend($1, 60000)", int32(conn.PgConn().PID()))
	}
	return ctx
}

// TraceBatchStart implements pgx.BatchTracer.
func (k *killer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	var all []string
	for _, q := range data.Batch.QueuedQueries {
		all = append(all, q.SQL)
	}
	return k.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: strings.Join(all, ";\n")})
}

// TraceBatchQuery implements pgx.BatchTracer.
func (k *killer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (k *killer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceQueryEnd implements pgx.QueryTracer.
func (k *killer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// everything is the content of all tables of sessions and memory, heartbeats aside.
func everything(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{
		"dingtalk_sessions", "dingtalk_session_events", "session_summaries", "compaction_log", "compaction_jobs", "blobs",
		"outbox", "tool_runs", "flush_debts", "memories",
	} {
		for _, row := range collect(t, pool, "SELECT to_jsonb(x)::text FROM "+table+" x ORDER BY 1", pgx.RowTo[string]) {
			all.WriteString(table + " " + row + "\n")
		}
	}
	return all.String()
}

// P49, P53: the server may die under any statement of any step of a compaction, the last commit among them. The step
// reports it, nothing of it was done, and a repetition works.
func TestDeathAtEveryStatement(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := open(t, url)
	k := &killer{pool: pool}
	s := openTraced(t, url, 1, k)
	c := newChat(t, s, "cid", "u", false)
	c.result("said by a tool")
	c.result("said by another")
	var source sessions.Source
	job := sessions.Job{Through: 3, Version: "v"}
	blob := sessions.BlobOf("said by a tool")
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"moving a result out", func(ctx context.Context) error {
			_, err := s.Compact(ctx, c.lease, sessions.Compaction{Shown: []sessions.Shown{{Seq: 4, Text: "moved", Tokens: 1, Blob: blob}}})
			return err
		}},
		{"opening a job", func(ctx context.Context) (err error) {
			source, err = s.OpenJob(ctx, c.lease, job)
			return err
		}},
		{"staging a job", func(ctx context.Context) error {
			return s.StageJob(ctx, c.lease, job, []byte("text"), sessions.Spending{})
		}},
		{"flushing", func(ctx context.Context) error {
			_, err := s.Flush(ctx, c.lease, memory.Flush{
				Through: 3, Last: true, Usage: sessions.Usage{Prompt: 5, Completion: 2},
				Drafts: []memory.Draft{{Scope: memory.ScopeGroup, ScopeID: "g", Kind: "fact", Content: "x"}},
			})
			return err
		}},
		{"compacting", func(ctx context.Context) error {
			first := summaryOf(0, 3, "one to three")
			first.Source, first.Shown = source.Hash, []sessions.Shown{{Seq: 7, Text: "cut", Tokens: 1}}
			first.Log.Usage = sessions.Usage{Prompt: 7}
			_, err := s.Compact(ctx, c.lease, first)
			return err
		}},
		{"rolling up", func(ctx context.Context) error {
			rolled := summaryOf(3, 5, "four and five")
			rolled.Summaries = append(rolled.Summaries, sessions.NewSummary{StartSeq: 1, EndSeq: 5, Text: "all", Level: 1})
			_, err := s.Compact(ctx, c.lease, rolled)
			return err
		}},
		{"logging a failure", func(ctx context.Context) error {
			return s.Log(ctx, c.lease, sessions.LogEntry{Outcome: "failed", Error: "busy", Usage: sessions.Usage{Prompt: 1}})
		}},
		{"undoing", func(ctx context.Context) error { _, err := s.Undo(ctx, c.lease, 0, 5); return err }},
		{"beginning anew", func(ctx context.Context) error { return s.Renew(ctx, c.lease) }},
		{"erasing", func(ctx context.Context) error { _, err := s.Erase(ctx, c.lease.Key, []int64{4}); return err }},
	} {
		k.dies(t, step.name, step.do)
	}
}

// dies kills the server under each statement of a step in turn, until the step succeeds because there is no further
// one.
func (k *killer) dies(t *testing.T, name string, do func(context.Context) error) {
	t.Helper()
	before := everything(t, k.pool)
	for n := 1; n < 100; n++ {
		k.left, k.seen = n, nil
		err := do(t.Context())
		if k.err != nil {
			t.Fatal(k.err)
		}
		after := everything(t, k.pool)
		switch {
		case k.left > 0 && err != nil:
			t.Fatalf("%s, with nothing in its way: %v", name, err)
		case k.left > 0 && after == before:
			t.Fatalf("%s changed nothing", name)
		case k.left > 0:
			if n < 4 {
				t.Errorf("%s was killed %d times only: want each of begin, lock, work and commit", name, n-1)
			}
			return
		case err == nil && strings.Contains(k.seen[len(k.seen)-1], "name: FramesOpen"): // behind the commit: the step waited without it
			if after == before {
				t.Errorf("%s succeeded and changed nothing", name)
			}
			return
		case err == nil || errors.Is(err, sessions.ErrConflict) || errors.Is(err, sessions.ErrRefused) || errors.Is(err, sessions.ErrLeaseLost):
			t.Errorf("%s, the server dead under %q, gave %v", name, k.seen[len(k.seen)-1], err)
		case after != before:
			t.Fatalf("%s, the server dead under %q, left\n%s\nof\n%s", name, k.seen[n-1], after, before)
		}
	}
	t.Fatalf("%s has no end", name)
}
