package sql_test

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

func TestMigrateUpDownUp(t *testing.T) {
	t.Parallel()
	url := sqltest.Empty(t)
	all := versions(t)

	status, err := sql.Status(t.Context(), url)
	if err != nil || len(status) != len(all) {
		t.Fatalf("an empty database has %d steps (%v), want %d", len(status), err, len(all))
	}
	for _, m := range status {
		if m.Applied {
			t.Errorf("step %s is applied to an empty database", m.Name)
		}
	}
	done, err := sql.Migrate(t.Context(), url)
	if err != nil || len(done) != len(all) {
		t.Fatalf("migrating took %d steps (%v), want %d", len(done), err, len(all))
	}
	before := schema(t, url)
	if err := sql.MigrateTo(t.Context(), url, 0); err != nil {
		t.Fatal(err)
	}
	if left := schema(t, url); left != "" {
		t.Errorf("migrating down left:\n%s", left)
	}
	if _, err := sql.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if after := schema(t, url); after != before {
		t.Errorf("up, down and up gave another schema:\n%s\nwant:\n%s", after, before)
	}
	if done, err = sql.Migrate(t.Context(), url); err != nil || len(done) != 0 {
		t.Errorf("migrating an up-to-date schema took %d steps (%v)", len(done), err)
	}
	if status, err = sql.Status(t.Context(), url); err != nil || !status[0].Applied || status[0].AppliedAt.IsZero() {
		t.Errorf("the status after migrating is %+v (%v)", status, err)
	}
}

// A replica of the first release may have filled the database before the newest one migrates it.
func TestMigrateWithRows(t *testing.T) {
	t.Parallel()
	url := sqltest.Empty(t)
	if err := sql.MigrateTo(t.Context(), url, 1); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := fs.ReadFile(testdata, "testdata/v1.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), string(rows)); err != nil {
		t.Fatalf("filling the first release's tables: %v", err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sql.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}

	s, _ := open(t, url)
	if _, err := s.Beat(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "robot/cid==", "new")
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Begin(t.Context(), l, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Summaries) != 1 || len(v.Tail) != 1 || len(v.Pending) != 1 || v.Pending[0].Message == nil || l.Term != 8 {
		t.Errorf("the old rows are seen as %+v under term %d", v, l.Term)
	}
	if unsent, err := s.Unsent(t.Context(), l); err != nil || len(unsent) != 1 || !unsent[0].Maybe {
		t.Errorf("the old release's open reply is seen as %+v (%v)", unsent, err)
	}
	// A compaction of the old release can be followed by another, but not undone: it kept no view to go back to.
	rolling := summaryOf(2, 3, "They asked again.")
	rolling.Summaries[0].StartSeq = 1
	if _, err := s.Compact(t.Context(), l, rolling); err != nil {
		t.Error(err)
	}
	if _, err := s.Undo(t.Context(), l, 0, 0); err != nil {
		t.Error(err)
	}
	if v, err = s.Begin(t.Context(), l, 0); err != nil || len(v.Summaries) != 1 || v.Summaries[0].Text != "They asked and were answered." || len(v.Tail) != 1 {
		t.Errorf("after an undo the old rows are seen as %+v (%v)", v, err)
	}
	if _, err := s.Undo(t.Context(), l, 0, 0); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("undoing the old release's compaction gave %v", err)
	}
}

// A reason that an older release stored may quote a message that is erased later.
func TestMigrateClearsReasons(t *testing.T) {
	t.Parallel()
	url := sqltest.Empty(t)
	if err := sql.MigrateTo(t.Context(), url, 18); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason) VALUES
		('a', 0, 2, 3, 'model error: refused "my code is 48213"'), ('b', 1, 4, 0, 'the process stopped')`); err != nil {
		t.Fatal(err)
	}
	if _, err := sql.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	var left string
	row := conn.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', session_key, from_seq, through_seq, failures) || ':' || reason, ', ' ORDER BY session_key) FROM flush_debts`)
	if err := row.Scan(&left); err != nil || left != "a 0 2 3:, b 1 4 0:" {
		t.Errorf("the debts are %q after migrating (%v)", left, err)
	}
}

// The way down keeps what the first release knows: the log, and summaries that lie end to end.
func TestMigrateDownWithRows(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := open(t, url)
	c := newChat(t, s, "cid", "u", false)
	c.result("said by a tool")
	shown := sessions.Compaction{Shown: []sessions.Shown{{Seq: 4, Text: "cut", Tokens: 1, Blob: sessions.BlobOf("said by a tool")}}}
	for _, step := range []func() error{
		func() error { _, err := s.Compact(t.Context(), c.lease, shown); return err },
		func() error { _, err := s.Compact(t.Context(), c.lease, summaryOf(0, 3, "undone")); return err },
		func() error { _, err := s.Undo(t.Context(), c.lease, 0, 0); return err },
		func() error { _, err := s.Compact(t.Context(), c.lease, summaryOf(0, 2, "closed")); return err },
		func() error { return s.Renew(t.Context(), c.lease) },
		func() error { c.say("u", "again"); return nil },
		func() error {
			last := summaryOf(5, 6, "active")
			last.Gen = 1
			_, err := s.Compact(t.Context(), c.lease, last)
			return err
		},
		func() error { return sql.MigrateTo(t.Context(), url, 1) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		`SELECT string_agg(content, '|' ORDER BY seq) FROM dingtalk_session_events WHERE seq IS NOT NULL`:                                             "hello|ok||said by a tool|ok|again|ok",
		`SELECT string_agg(concat_ws(':', summary, status), ' ' ORDER BY id) FROM session_summaries`:                                                  "undone:superseded closed:superseded active:active",
		`SELECT string_agg(concat_ws(':', outcome, summary_id IS NOT NULL), ' ' ORDER BY id) FROM compaction_log`:                                     "committed:t committed:t committed:t",
		`SELECT concat_ws(' ', last_seq, compacted_seq, compaction_count) FROM dingtalk_sessions`:                                                     "7 6 3",
		`SELECT count(*)::text FROM information_schema.tables WHERE table_name IN ('blobs', 'compaction_jobs')`:                                       "0",
		`SELECT count(*)::text FROM information_schema.columns WHERE column_name IN ('shown', 'base_seq', 'view_version', 'view_before', 'asked_by')`: "0",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s\ngave %q (%v), want %q", query, got, err, want)
		}
	}
	if _, err := sql.Migrate(t.Context(), url); err != nil {
		t.Error(err)
	}
}

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := sqltest.Empty(t)
	var wg sync.WaitGroup
	steps := make([]int, 4)
	for i := range steps {
		wg.Go(func() {
			done, err := sql.Migrate(t.Context(), url)
			if err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
			steps[i] = len(done)
		})
	}
	wg.Wait()
	total := 0
	for _, n := range steps {
		total += n
	}
	if want := len(versions(t)); total != want {
		t.Errorf("four replicas took %v steps together, want %d", steps, want)
	}
}

// The promises of a table, for any writer.
func TestLawsOfTheSchema(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	execute(t, pool, "INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq) VALUES ('k', 'r', 'c', '2', 5)")
	for name, statement := range map[string]string{
		"a pending message with a place":    "INSERT INTO dingtalk_session_events (session_key, seq, role, state, msg_id) VALUES ('k', 1, 'user', 'pending', 'm')",
		"an answered message without one":   "INSERT INTO dingtalk_session_events (session_key, role, state, msg_id) VALUES ('k', 'user', 'done', 'm')",
		"a summary with a place":            "INSERT INTO dingtalk_session_events (session_key, seq, role) VALUES ('k', 1, 'summary')",
		"a pending answer":                  "INSERT INTO dingtalk_session_events (session_key, role, state) VALUES ('k', 'assistant', 'pending')",
		"a message without an id":           "INSERT INTO dingtalk_session_events (session_key, role, state) VALUES ('k', 'user', 'pending')",
		"a backward range":                  "INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens) VALUES ('k', 0, 2, 1, 1, 1, 1, 's', 1)",
		"an empty summary":                  "INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens) VALUES ('k', 0, 1, 1, 1, 1, 1, '', 1)",
		"a cursor beyond the log":           "UPDATE dingtalk_sessions SET compacted_seq = 6",
		"a flush beyond the log":            "UPDATE dingtalk_sessions SET flushed_seq = 6",
		"a sent reply without its time":     "INSERT INTO outbox (session_key, target, body, state, sender) VALUES ('k', '{}', 'b', 'sent', 'a')",
		"an empty debt":                     "INSERT INTO flush_debts (session_key, from_seq, through_seq) VALUES ('k', 2, 2)",
		"a failed attempt with a summary":   "INSERT INTO compaction_log (session_key, outcome, summary_id) VALUES ('k', 'failed', 1)",
		"an undo of what failed":            "INSERT INTO compaction_log (session_key, outcome, view_before) VALUES ('k', 'failed', '{}')",
		"a generation beyond its summaries": "UPDATE dingtalk_sessions SET base_seq = 1",
		"a reference without its text":      "INSERT INTO dingtalk_session_events (session_key, seq, role, blob_id) VALUES ('k', 1, 'tool', 'b')",
		"a shown text without its count":    "INSERT INTO dingtalk_session_events (session_key, seq, role, shown) VALUES ('k', 1, 'tool', 's')",
		"a backward job":                    "INSERT INTO compaction_jobs (session_key, gen, from_seq, through_seq, source_hash) VALUES ('k', 0, 2, 1, 'h')",
	} {
		if _, err := pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "violates check constraint") {
			t.Errorf("%s was taken: %v", name, err)
		}
	}
}

// An engine that spreads rows over servers can keep a session together only if its key leads every key.
func TestSessionKeyLeadsEveryKey(t *testing.T) {
	t.Parallel()
	rows, err := sqltest.New(t).Query(t.Context(), `
		SELECT c.relname, i.relname, a.attname
		FROM pg_index x
		JOIN pg_class c ON c.oid = x.indrelid
		JOIN pg_class i ON i.oid = x.indexrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
		WHERE x.indisunique AND EXISTS (
			SELECT 1 FROM pg_attribute k WHERE k.attrelid = c.oid AND k.attname = 'session_key')`)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		var table, index, first string
		if err := rows.Scan(&table, &index, &first); err != nil {
			t.Fatal(err)
		}
		n++
		if first != "session_key" {
			t.Errorf("unique index %s of %s begins with %s", index, table, first)
		}
	}
	if err := rows.Err(); err != nil || n < 9 {
		t.Errorf("only %d unique indexes were looked at (%v)", n, err)
	}
}

func TestMigrationsSayWhatRunsOnThem(t *testing.T) {
	t.Parallel()
	for _, name := range versions(t) {
		content, err := fs.ReadFile(sql.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(content), "\n")
		if !regexp.MustCompile(`^-- .+\. Oldest release that can run on it: \d+\.\d+\.$`).MatchString(first) {
			t.Errorf("%s begins with %q", name, first)
		}
	}
}

func versions(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(sql.Migrations(), "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no migrations (%v)", err)
	}
	return names
}

// schema lists columns and constraints, one a line, goose's own table aside.
func schema(t *testing.T, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var s string
	err = conn.QueryRow(t.Context(), `
		SELECT coalesce(string_agg(line, E'\n' ORDER BY line), '') FROM (
			SELECT c.table_name || '.' || c.column_name || ' ' || c.data_type || ' ' || c.is_nullable AS line
			FROM information_schema.columns c WHERE c.table_schema = 'public' AND c.table_name NOT LIKE 'goose%'
			UNION ALL
			SELECT r.conrelid::regclass || ' ' || r.conname || ' ' || pg_get_constraintdef(r.oid)
			FROM pg_constraint r WHERE r.connamespace = 'public'::regnamespace AND r.conrelid::regclass::text NOT LIKE 'goose%'
			UNION ALL
			SELECT i.indexdef FROM pg_indexes i WHERE i.schemaname = 'public' AND i.tablename NOT LIKE 'goose%'
		) x`).Scan(&s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The move to one table of usage changes no sum of a session, day and kind, and neither does the way back. Usage that the older table
// alone has is of an unknown model and person. An older replica, which writes both tables, goes on meanwhile.
func TestMigrateUsage(t *testing.T) {
	t.Parallel()
	url := sqltest.Empty(t)
	if err := sql.MigrateTo(t.Context(), url, 44); err != nil {
		t.Fatal(err)
	}
	_, pool := open(t, url)
	execute(t, pool, `INSERT INTO model_spend (session_key, day, kind, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
		SELECT 's' || i % 7, date '2026-01-01' + i % 11, (ARRAY['turn', 'flush', 'summary', 'digest', 'consolidation'])[1 + i % 5], i % 3, i * 7 % 1000, i % 13, i % 17, i % 19 / 7.0
		FROM generate_series(0, 384) i`)
	// Usage that both tables have, that has lost tokens, turns or costs in the newer one, or is missing there.
	execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, model, person, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
		SELECT session_key, day, kind, CASE session_key WHEN 's2' THEN '' ELSE 'm' || p END, CASE session_key WHEN 's2' THEN '' ELSE 'p' || p END,
			CASE WHEN p = 1 AND session_key <> 's3' THEN turns ELSE 0 END,
			CASE WHEN session_key IN ('s1', 's2') THEN prompt_tokens / 3 ELSE div(3 - p + prompt_tokens, 3) END, div(3 - p + cached_tokens, 3), div(3 - p + completion_tokens, 3),
			CASE session_key WHEN 's4' THEN 0 ELSE 1.0 / 3 * cost END
		FROM model_spend, generate_series(1, 3) p WHERE session_key NOT IN ('s5', 's6') AND (session_key <> 's2' OR p = 1)`)
	sums := func(table string) []string {
		t.Helper()
		return collect(t, pool, `SELECT concat_ws(' ', session_key, day, kind, sum(turns), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), round(sum(cost)::numeric, 9))
			FROM `+table+` GROUP BY session_key, day, kind ORDER BY session_key, day, kind`, pgx.RowTo[string])
	}
	spent := sums("model_spend")
	if len(spent) != 385 || slices.Equal(sums("model_usage"), spent) {
		t.Fatalf("the tables have %d sums before the move, want 385 that differ", len(spent))
	}
	named := func() []string {
		return collect(t, pool, "SELECT concat_ws(' ', u.*) FROM model_usage u WHERE person <> '' ORDER BY 1", pgx.RowTo[string])
	}
	people := named()
	if _, err := sql.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if got := sums("model_usage"); !slices.Equal(got, spent) {
		t.Errorf("after the move the sums are\n%q, want\n%q", got, spent)
	}
	if !slices.Equal(named(), people) {
		t.Error("the move changed usage of a known person")
	}
	if n := collect(t, pool, "SELECT count(*) FROM model_usage WHERE session_key = 's0' AND person = ''", pgx.RowTo[int64]); n[0] != 0 {
		t.Errorf("%d remainders are of a session that both tables have", n[0])
	}

	const spends = `INSERT INTO model_spend AS m (session_key, day, kind, prompt_tokens) VALUES ('s5', '2026-01-01', 'turn', 30)
		ON CONFLICT (session_key, day, kind) DO UPDATE SET prompt_tokens = m.prompt_tokens + EXCLUDED.prompt_tokens`
	const used = `INSERT INTO model_usage AS u (session_key, day, kind, model, person, prompt_tokens) VALUES ('s5', '2026-01-01', 'turn', 'm', 'p', 30)
		ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens`
	execute(t, pool, "WITH spent AS ("+spends+") "+used) // an older replica
	execute(t, pool, used)                               // a new one
	now := sums("model_usage")
	for _, version := range []int64{44, 45} {
		if err := sql.MigrateTo(t.Context(), url, version); err != nil {
			t.Fatal(err)
		}
		if got := sums("model_usage"); !slices.Equal(got, now) {
			t.Errorf("at version %d the sums are\n%q, want\n%q", version, got, now)
		}
		if got := sums("model_spend"); !slices.Equal(got, now) {
			t.Errorf("at version %d the older table has\n%q, want\n%q", version, got, now)
		}
	}
}
