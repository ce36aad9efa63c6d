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

	"ebb/sessions/periodic"
	"ebb/sql"
	"ebb/sql/sqltest"
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
	_, pool := open(t, url)
	execute(t, pool, "DELETE FROM goose_db_version WHERE version_id > 44")
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
		_, pool := open(t, c.url)
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
		content, err := fs.ReadFile(sql.SchemaFiles(), name)
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
	_, pool := open(t, url)
	dump, err := testdata.ReadFile("testdata/976f4093.sql")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, pool, string(dump))
	return url
}

// catalog lists the parts of a schema.
func catalog(t *testing.T, url string) []string {
	t.Helper()
	_, pool := open(t, url)
	query, err := testdata.ReadFile("testdata/catalog.sql")
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, pool, string(query), pgx.RowTo[string])
}
