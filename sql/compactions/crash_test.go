package compactions_test

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
	"ebb/sql/storetest"
)

// everything is the content of all tables of sessions and memory, heartbeats aside.
func everything(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{
		"dingtalk_sessions", "dingtalk_session_events", "session_summaries", "compaction_log", "compaction_jobs", "blobs",
		"outbox", "tool_runs", "flush_debts", "memories",
	} {
		for _, row := range storetest.Collect(t, pool, "SELECT to_jsonb(x)::text FROM "+table+" x ORDER BY 1", pgx.RowTo[string]) {
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
	_, pool := storetest.Open(t, url)
	k := &storetest.Killer{Pool: pool}
	s := storetest.OpenTraced(t, url, 1, k)
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Result("said by a tool")
	c.Result("said by another")
	var source sessions.Source
	job := sessions.Job{Through: 3, Version: "v"}
	blob := sessions.BlobOf("said by a tool")
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"moving a result out", func(ctx context.Context) error {
			_, err := s.Compactions.Compact(ctx, c.Lease, sessions.Compaction{Shown: []sessions.Shown{{Seq: 4, Text: "moved", Tokens: 1, Blob: blob}}})
			return err
		}},
		{"opening a job", func(ctx context.Context) (err error) {
			source, err = s.Jobs.OpenJob(ctx, c.Lease, job)
			return err
		}},
		{"staging a job", func(ctx context.Context) error {
			return s.Jobs.StageJob(ctx, c.Lease, job, []byte("text"), sessions.Spending{})
		}},
		{"flushing", func(ctx context.Context) error {
			_, err := s.Flushes.Flush(ctx, c.Lease, memory.Flush{
				Through: 3, Last: true, Usage: sessions.Usage{Prompt: 5, Completion: 2},
				Drafts: []memory.Draft{{Scope: memory.ScopeGroup, ScopeID: "g", Kind: "fact", Content: "x"}},
			})
			return err
		}},
		{"compacting", func(ctx context.Context) error {
			first := storetest.SummaryOf(0, 3, "one to three")
			first.Source, first.Shown = source.Hash, []sessions.Shown{{Seq: 7, Text: "cut", Tokens: 1}}
			first.Log.Usage = sessions.Usage{Prompt: 7}
			_, err := s.Compactions.Compact(ctx, c.Lease, first)
			return err
		}},
		{"rolling up", func(ctx context.Context) error {
			rolled := storetest.SummaryOf(3, 5, "four and five")
			rolled.Summaries = append(rolled.Summaries, sessions.NewSummary{StartSeq: 1, EndSeq: 5, Text: "all", Level: 1})
			_, err := s.Compactions.Compact(ctx, c.Lease, rolled)
			return err
		}},
		{"logging a failure", func(ctx context.Context) error {
			return s.Compactions.Log(ctx, c.Lease, sessions.LogEntry{Outcome: "failed", Error: "busy", Usage: sessions.Usage{Prompt: 1}})
		}},
		{"undoing", func(ctx context.Context) error { _, err := s.Compactions.Undo(ctx, c.Lease, 0, 5); return err }},
		{"beginning again", func(ctx context.Context) error { return s.Sessions.Renew(ctx, c.Lease) }},
		{"erasing", func(ctx context.Context) error { _, err := s.Erasure.Erase(ctx, c.Lease.Key, []int64{4}); return err }},
	} {
		dies(k, t, step.name, step.do)
	}
}

// dies kills the server under each statement of a step in turn, until the step succeeds because there is no further
// one.
func dies(k *storetest.Killer, t *testing.T, name string, do func(context.Context) error) {
	t.Helper()
	before := everything(t, k.Pool)
	for n := 1; n < 100; n++ {
		k.Left, k.Seen = n, nil
		err := do(t.Context())
		if k.Err != nil {
			t.Fatal(k.Err)
		}
		after := everything(t, k.Pool)
		switch {
		case k.Left > 0 && err != nil:
			t.Fatalf("%s, with nothing in its way: %v", name, err)
		case k.Left > 0 && after == before:
			t.Fatalf("%s changed nothing", name)
		case k.Left > 0:
			if n < 4 {
				t.Errorf("%s was killed %d times only: want each of begin, lock, work and commit", name, n-1)
			}
			return
		case err == nil && strings.Contains(k.Seen[len(k.Seen)-1], "name: FramesOpen"): // behind the commit: the step waited without it
			if after == before {
				t.Errorf("%s succeeded and changed nothing", name)
			}
			return
		case err == nil || errors.Is(err, sessions.ErrConflict) || errors.Is(err, sessions.ErrRefused) || errors.Is(err, sessions.ErrLeaseLost):
			t.Errorf("%s, the server dead under %q, gave %v", name, k.Seen[len(k.Seen)-1], err)
		case after != before:
			t.Fatalf("%s, the server dead under %q, left\n%s\nof\n%s", name, k.Seen[n-1], after, before)
		}
	}
	t.Fatalf("%s has no end", name)
}
