package sql_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A new database gets the whole schema in one step. Status changes nothing.
func TestMigrateNewDatabase(t *testing.T) {
	t.Parallel()
	url := sqltest.Empty(t)
	all := versions(t)
	status, err := sql.Status(t.Context(), url)
	if err != nil || len(status) != len(all) || slices.ContainsFunc(status, func(m sql.Migration) bool { return m.Applied }) {
		t.Errorf("the status of an empty database is %+v (%v)", status, err)
	}
	if left := catalog(t, url); len(left) > 0 {
		t.Errorf("the status left %q", left)
	}
	newest := status[len(status)-1].Version
	done, err := sql.Migrate(t.Context(), url)
	if err != nil || len(done) != 1 || done[0].Name != "schema.sql" || done[0].Version != newest {
		t.Fatalf("migrating took the steps %+v (%v)", done, err)
	}
	if done, err = sql.Migrate(t.Context(), url); err != nil || len(done) != 0 {
		t.Errorf("migrating an up-to-date schema took the steps %+v (%v)", done, err)
	}
	status, err = sql.Status(t.Context(), url)
	if err != nil || len(status) != len(all) || slices.ContainsFunc(status, func(m sql.Migration) bool { return !m.Applied || m.AppliedAt.IsZero() }) {
		t.Errorf("the status after migrating is %+v (%v)", status, err)
	}
}

// A change of the schema is a migration and the same change in schema.sql: a database of the baseline and a new one end up equal.
func TestMigrationsLeadToSchema(t *testing.T) {
	t.Parallel()
	url := ofBaseline(t)
	done, err := sql.Migrate(t.Context(), url)
	if err != nil || len(done) != len(versions(t)) {
		t.Fatalf("migrating took the steps %+v (%v)", done, err)
	}
	migrated, created := catalog(t, url), catalog(t, sqltest.URL(t))
	if len(created) < 300 {
		t.Fatalf("the catalog of a new database has only %d parts", len(created))
	}
	for _, part := range migrated {
		if !slices.Contains(created, part) {
			t.Errorf("schema.sql lacks what migrations make or leave: %s", part)
		}
	}
	for _, part := range created {
		if !slices.Contains(migrated, part) {
			t.Errorf("no migration makes what schema.sql has: %s", part)
		}
	}
}

// A database from before the baseline stays as it is, and the error names the commit to pass through.
func TestMigrateRefusesOlderDatabase(t *testing.T) {
	t.Parallel()
	url := ofBaseline(t)
	_, pool := storetest.Open(t, url)
	storetest.Execute(t, pool, "DELETE FROM goose_db_version WHERE version_id > 44")
	before := catalog(t, url)
	_, err := sql.Migrate(t.Context(), url)
	_, err2 := sql.Status(t.Context(), url)
	for _, err := range []error{err, err2} {
		if old, ok := errors.AsType[sql.TooOldError](err); !ok || old.Version != 44 || !strings.HasSuffix(err.Error(), "run bot migrate of commit 976f4093 first") {
			t.Errorf("a database of version 44 gave %v", err)
		}
	}
	if !slices.Equal(catalog(t, url), before) {
		t.Error("the refused database was changed")
	}
}

// A release of the baseline neither migrates a newer database nor takes it for its own.
func TestOlderReleaseEndsOnNewerDatabase(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	for v := 1; v <= 45; v++ {
		files[fmt.Sprintf("%05d_step.sql", v)] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE wrong ();\n")}
	}
	upgraded := ofBaseline(t)
	if _, err := sql.Migrate(t.Context(), upgraded); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"an upgraded database": upgraded, "a new database": sqltest.URL(t)} {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		db := stdlib.OpenDB(*config)
		defer db.Close()
		before := catalog(t, url)
		older, err := goose.NewProvider(goose.DialectPostgres, db, files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := older.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("the older release migrates %s: %v", name, err)
		}
		status, err := older.Status(t.Context())
		if err != nil || !slices.ContainsFunc(status, func(s *goose.MigrationStatus) bool { return s.State == goose.StatePending }) {
			t.Errorf("the older release takes %s for its own (%v)", name, err)
		}
		if !slices.Equal(catalog(t, url), before) {
			t.Errorf("the older release changed %s", name)
		}
	}
}

// A migration waits until replicas have stopped that it would break, and changes nothing while they run.
func TestMigrateAwaitsStop(t *testing.T) {
	t.Parallel()
	running := ofBaseline(t)
	_, pool := storetest.Open(t, running)
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() + interval '10 seconds' WHERE id = 'replica-a'")
	before := catalog(t, running)
	_, err := sql.Migrate(t.Context(), running)
	if some, ok := errors.AsType[sql.RunningError](err); !ok || some.Replicas != 1 {
		t.Fatalf("migrating under a replica of an older release gave %v", err)
	}
	if !slices.Equal(catalog(t, running), before) {
		t.Error("the database was changed under a replica of an older release")
	}
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '13 seconds' WHERE id = 'replica-a'") // killed
	if _, err := sql.Migrate(t.Context(), running); err != nil {
		t.Errorf("migrating after the last heartbeat: %v", err)
	}
}

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]int{sqltest.Empty(t): 1, ofBaseline(t): len(versions(t))} {
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
		if total != want {
			t.Errorf("four replicas took %v steps together, want %d", steps, want)
		}
	}
}

// A migration that is cut off leaves a database that the next one brings up to date.
func TestMigrateAfterACut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url     string
		barrier string // holds the migration up: its own CREATE TABLE, or a build of an index
	}{
		"a new database":             {sqltest.Empty(t), "CREATE TABLE audit ()"},
		"a database of the baseline": {ofBaseline(t), "SELECT pg_current_snapshot()"},
	} {
		_, pool := storetest.Open(t, c.url)
		tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), c.barrier); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := sql.Migrate(t.Context(), c.url)
			failed <- err
		}()
		waiting := func() (bool, error) {
			var n int
			err := pool.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()`).Scan(&n)
			return n > 0, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := periodic.Poll(ctx, 10*time.Millisecond, waiting); err != nil {
			t.Fatalf("%s: the migration never waited: %v", name, err)
		}
		if err := <-failed; err == nil {
			t.Fatalf("%s: the migration outlived its connection", name)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := sql.Migrate(t.Context(), c.url); err != nil {
			t.Fatalf("%s: migrating after a cut: %v", name, err)
		}
		if got, want := catalog(t, c.url), catalog(t, sqltest.URL(t)); !slices.Equal(got, want) {
			t.Errorf("%s has after a cut the parts\n%s", name, strings.Join(got, "\n"))
		}
	}
}

// The promises of a table, for any writer. Tables that each turn writes have few of them.
func TestLawsOfTheSchema(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	storetest.Execute(t, pool, "INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq) VALUES ('k', 'r', 'c', '2', 5)")
	for name, statement := range map[string]string{
		"a backward range":                "INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens) VALUES ('k', 0, 2, 1, 1, 1, 1, 's', 1)",
		"an empty summary":                "INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens) VALUES ('k', 0, 1, 1, 1, 1, 1, '', 1)",
		"a cursor beyond the log":         "UPDATE dingtalk_sessions SET compacted_seq = 6",
		"a flush beyond the log":          "UPDATE dingtalk_sessions SET flushed_seq = 6",
		"a report beyond the log":         "UPDATE dingtalk_sessions SET observed_seq = 6",
		"a log that ends before a cursor": "UPDATE dingtalk_sessions SET flushed_seq = 3, last_seq = 2",
		"a generation beyond its cursor":  "UPDATE dingtalk_sessions SET base_seq = 1",
		"an empty debt":                   "INSERT INTO flush_debts (session_key, from_seq, through_seq) VALUES ('k', 2, 2)",
		"a failed attempt with a summary": "INSERT INTO compaction_log (session_key, outcome, summary_id) VALUES ('k', 'failed', 1)",
		"an undo of what failed":          "INSERT INTO compaction_log (session_key, outcome, view_before) VALUES ('k', 'failed', '{}')",
		"a backward job":                  "INSERT INTO compaction_jobs (session_key, gen, from_seq, through_seq, source_hash) VALUES ('k', 0, 2, 1, 'h')",
	} {
		if _, err := pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "violates check constraint") {
			t.Errorf("%s was taken: %v", name, err)
		}
	}
}

// A row that changes in no indexed column is written in place, without entries in indexes. Each further index of the log costs each
// turn two or three entries.
func TestIndexesLeaveTurnsCheap(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	indexed := func(table string) []string {
		return storetest.Collect(t, pool, `SELECT DISTINCT a.attname::text FROM pg_index i
			JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refobjid = i.indrelid AND d.refobjsubid > 0
			JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
			WHERE i.indrelid = $1::text::regclass
			UNION SELECT a.attname FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY(c.conkey)
			WHERE c.conrelid = $1::text::regclass AND c.contype = 'p' ORDER BY 1`, pgx.RowTo[string], table)
	}
	if got, want := indexed("dingtalk_sessions"), []string{"conversation_id", "robot_code", "session_key"}; !slices.Equal(got, want) {
		t.Errorf("the indexes of sessions have the columns %q, want %q: each turn changes all others", got, want)
	}
	marks := []string{"attempts", "attempt_term", "counted_term", "width", "admitted"} // by a turn that begins
	if got := indexed("dingtalk_session_events"); !slices.Contains(got, "state") || slices.ContainsFunc(got, func(c string) bool { return slices.Contains(marks, c) }) {
		t.Errorf("the indexes of events have the columns %q", got)
	}
	const most = 6
	if n := storetest.Collect(t, pool, "SELECT count(*) FROM pg_index WHERE indrelid = 'dingtalk_session_events'::regclass", pgx.RowTo[int]); n[0] > most {
		t.Errorf("events have %d indexes, want at most %d", n[0], most)
	}
	checks := storetest.Collect(t, pool, `SELECT conrelid::regclass || '.' || conname FROM pg_constraint
		WHERE contype = 'c' AND conrelid::regclass::text IN ('dingtalk_sessions', 'dingtalk_session_events', 'outbox', 'cards', 'tool_runs', 'model_usage')`, pgx.RowTo[string])
	if want := []string{"dingtalk_sessions.cursors_within_log"}; !slices.Equal(checks, want) {
		t.Errorf("the tables of a turn have the CHECKs %q, want %q: each statement that writes reads them first", checks, want)
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
		content, err := fs.ReadFile(sql.SchemaFiles(), name)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(content), "\n")
		if !regexp.MustCompile(`^-- .+\. (Oldest release that can run on it: \d+\.\d+|No older release can run on it)\.$`).MatchString(first) {
			t.Errorf(`%s begins with %q; want a purpose, and "Oldest release that can run on it: 0.1." or "No older release can run on it."`, name, first)
		}
		if strings.Contains(string(content), "+goose Down") {
			t.Errorf("%s has a way down: a database goes back by a backup", name)
		}
	}
}

func versions(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(sql.SchemaFiles(), "migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no migrations (%v)", err)
	}
	return names
}

// ofBaseline returns the address of a database as the baseline's release left it, with rows in each table.
func ofBaseline(t *testing.T) string {
	t.Helper()
	url := sqltest.Empty(t)
	_, pool := storetest.Open(t, url)
	dump, err := testdata.ReadFile("testdata/976f4093.sql")
	if err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, string(dump))
	return url
}

// catalog lists the parts of a schema.
func catalog(t *testing.T, url string) []string {
	t.Helper()
	_, pool := storetest.Open(t, url)
	query, err := testdata.ReadFile("testdata/catalog.sql")
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Collect(t, pool, string(query), pgx.RowTo[string])
}

// Each row of a database of the baseline is still there after the upgrade, and the stores read it.
func TestMigrateKeepsRows(t *testing.T) {
	t.Parallel()
	url := ofBaseline(t)
	_, before := storetest.Open(t, url)
	count := func() map[string]int64 {
		rows := map[string]int64{}
		for _, table := range storetest.Collect(t, before, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'goose_db_version'", pgx.RowTo[string]) {
			rows[table] = storetest.Collect(t, before, "SELECT count(*) FROM "+table, pgx.RowTo[int64])[0]
		}
		return rows
	}
	rows := count()
	if _, err := sql.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	left := count()
	for table, n := range rows {
		if n == 0 {
			t.Errorf("%s is empty before the upgrade, so that nothing is seen of its rows", table)
		}
		if left[table] != n && !slices.Contains(dropped, table) {
			t.Errorf("%s has %d rows after the upgrade, want %d", table, left[table], n)
		}
	}

	s, _ := storetest.Open(t, url)
	if _, err := s.Leases.Beat(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	l := storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), "robot/cidOps==", "new"))
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), l, 10))
	if v.Session.LastSeq != 12 || v.Session.Lease.Term != 10 || len(v.Summaries) != 1 || !strings.Contains(v.Summaries[0].Text, "48213") || len(v.Runs) != 2 {
		t.Errorf("the session is seen as %+v", v)
	}
	var said []string
	for _, e := range slices.Concat(v.Tail, v.Pending) {
		said = append(said, fmt.Sprint(e.Seq, e.SenderID, e.SenderNick, e.Content))
		if e.Role == sessions.RoleUser && (e.Message == nil || e.Message.Text != e.Content || e.Message.SenderID != e.SenderID || e.Message.ID == "") {
			t.Errorf("event %d has the message %+v", e.ID, e.Message)
		}
	}
	if want := []string{"7staff1张伟（值班）[引用 李娜: 查一下昨晚的超时报警]\n结论发我一份", "8好的，已发给你。", "9staff2李娜/status", "10会话正常。", "11$:enc9外部客户王看下截图 [图片]", "12图片里是 502 页面。", "0staff1张伟现在恢复了吗？"}; !slices.Equal(said, want) {
		t.Errorf("the view has %q, want %q", said, want)
	}
	if quote := v.Tail[0].Message.Quote; quote == nil || quote.SenderID != "staff2" || quote.Nick != "李娜" {
		t.Errorf("the quote is %+v", quote)
	}
	if unsent := storetest.Must[[]sessions.Outgoing](t)(s.Outbox.Unsent(t.Context(), l)); len(unsent) != 1 || !unsent[0].Maybe || unsent[0].Reply.Target.Card != "card-2" {
		t.Errorf("the open replies are %+v", unsent)
	}
	if due := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), l.Key)); len(due) != 1 || due[0].Creator.StaffID != "staff2" {
		t.Errorf("the reminders are %+v", due)
	}
	storetest.Must[sessions.LogEntry](t)(s.Compactions.Undo(t.Context(), l, 0, 0))
	if v = storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), l, 0)); len(v.Summaries) != 1 || v.Summaries[0].Text != "问了超时。" || len(v.Tail) != 8 || !strings.Contains(v.Tail[0].Content, "48213 次超时。") {
		t.Errorf("after an undo the session is seen as %+v", v)
	}
	for who, want := range map[sessions.UserID]memory.Preview{
		"staff1": {Messages: 4, Answers: 3, Facts: 2, Groups: []string{"支付网关值班"}, Private: 1, Usage: 1, Schedules: 1, IDs: 1},
		"staff2": {Messages: 4, Answers: 3, Facts: 4, Summaries: 1, Groups: []string{"支付网关值班", "支付网关值班"}, Usage: 1, Schedules: 1, Promotions: 1, Compactions: 2, Logins: 1, Actions: 1},
	} {
		if got := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), memory.Forget{Person: who})); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the rows of %s are %+v, want %+v", who, got, want)
		}
	}
}

// dropped are the tables of the baseline that are no more.
var dropped = []string{"model_spend"}
