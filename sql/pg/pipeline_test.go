package pg_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// queue is one batch of a pipeline, as the batch functions of sqlc queue it.
func queue(t *testing.T, p *pg.Pipeline, statement string, rows ...[]any) pgx.BatchResults {
	t.Helper()
	b := &pgx.Batch{}
	for _, args := range rows {
		b.Queue(statement, args...)
	}
	return p.SendBatch(t.Context(), b)
}

func resultsOf[T any](t *testing.T, results pgx.BatchResults) []T {
	t.Helper()
	rows, err := results.Query()
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Must[[]T](t)(pgx.CollectRows(rows, pgx.RowTo[T]))
}

// A pipeline is one transaction: its statements see each other, its results come in order, and an error in the middle undoes all.
// So it is behind a pooler, too.
func TestPipelineIsOneTransaction(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	bouncer := sqltest.Pooler(t, address)
	for name, o := range map[string]pg.Options{
		"direct": {URL: address, MaxConns: 1},
		"pooler": {URL: bouncer.Through(address), Pooler: true, MaxConns: 1},
	} {
		db, err := pg.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		table := "numbers_" + name
		if _, err := db.Pool.Exec(t.Context(), "CREATE TABLE "+table+" (n bigint PRIMARY KEY, word text)"); err != nil {
			t.Fatal(err)
		}
		insert, count := "INSERT INTO "+table+" VALUES ($1, $2) RETURNING n + 100", "SELECT count(*) FROM "+table
		for round := range 2 { // the statements are known the second time
			base := 10 * round
			p := db.Pool.Pipeline()
			first := queue(t, p, insert, []any{base + 1, "one"}, []any{base + 2, nil})
			counted := queue(t, p, count, nil)
			words := queue(t, p, "SELECT word FROM "+table+" WHERE n > $1 ORDER BY n", []any{base})
			none := queue(t, p, "DELETE FROM "+table+" WHERE n < $1 RETURNING n", []any{0})
			if err := first.QueryRow().Scan(new(int64)); err == nil {
				t.Errorf("%s: a result came before the pipeline was sent", name)
			}
			last := queue(t, p, insert, []any{base + 3, "three"})
			if err := p.Send(t.Context()); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, w := range resultsOf[*string](t, words) {
				said = append(said, pg.OrZero(w))
			}
			if got := resultsOf[int64](t, counted); !slices.Equal(got, []int64{int64(3*round + 2)}) || !slices.Equal(said, []string{"one", ""}) {
				t.Errorf("%s: %v rows were counted, and their words are %q", name, got, said)
			}
			var n int64
			if err := last.QueryRow().Scan(&n); err != nil || n != int64(base+103) {
				t.Errorf("%s: the last statement returned %d, %v", name, n, err)
			}
			if err := none.QueryRow().Scan(&n); err != pgx.ErrNoRows { //nolint:errorlint // callers compare it, too
				t.Errorf("%s: a statement without a row gave %v", name, err)
			}
		}

		p := db.Pool.Pipeline()
		before := queue(t, p, insert, []any{31, "before"})
		failed := queue(t, p, insert, []any{32, "in the middle"}, []any{1, "there"})
		after := queue(t, p, insert, []any{33, "after"})
		if err := p.Send(t.Context()); !pg.IsCode(err, "23505") {
			t.Fatalf("%s: a failing pipeline gave %v", name, err)
		}
		var n int64
		if err := before.QueryRow().Scan(&n); err != nil || n != 131 {
			t.Errorf("%s: the statement before the failed one returned %d, %v", name, n, err)
		}
		_, _ = failed.Exec()
		if _, err := failed.Exec(); !pg.IsCode(err, "23505") {
			t.Errorf("%s: the failed statement gave %v", name, err)
		}
		if _, err := after.Exec(); err == nil {
			t.Errorf("%s: the statement after the failed one gave a result", name)
		}
		if err := db.Pool.QueryRow(t.Context(), count).Scan(&n); err != nil || n != 6 {
			t.Errorf("%s: %d rows are there after a failed pipeline (%v), want 6", name, n, err)
		}
	}
}

// A clash of transactions repeats a whole pipeline, and its results are those of the last run.
func TestPipelineIsRepeatedAfterAClash(t *testing.T) {
	t.Parallel()
	db, err := pg.Open(t.Context(), pg.Options{URL: sqltest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	storetest.Execute(t, db.Pool.Pool, "CREATE TABLE numbers (n bigint)")
	fail(t, db.Pool.Pool, "numbers", "40001", 4)
	p := db.Pool.Pipeline()
	rows := queue(t, p, "INSERT INTO numbers VALUES ($1) RETURNING n", []any{1}, []any{2}, []any{3})
	if err := p.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	for want := int64(1); want <= 3; want++ {
		var n int64
		if err := rows.QueryRow().Scan(&n); err != nil || n != want {
			t.Errorf("a result is %d (%v), want %d", n, err, want)
		}
	}
	if got := storetest.Collect(t, db.Pool.Pool, "SELECT n FROM numbers ORDER BY n", pgx.RowTo[int64]); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("after a clash the rows are %v", got)
	}
	fail(t, db.Pool.Pool, "numbers", "40P01", 1000)
	p = db.Pool.Pipeline()
	queue(t, p, "INSERT INTO numbers VALUES ($1)", []any{4})
	if err := p.Send(t.Context()); !pg.IsCode(err, "40P01") {
		t.Errorf("a pipeline that clashes for ever gave %v", err)
	}
}

// A pipeline of nothing asks nothing, other statements than batches are refused, and an error hints at the setting that helps.
func TestPipelineTakesBatchesOnly(t *testing.T) {
	t.Parallel()
	db, err := pg.Open(t.Context(), pg.Options{URL: sqltest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	p := db.Pool.Pipeline()
	if err := p.Send(t.Context()); err != nil {
		t.Error(err)
	}
	p = db.Pool.Pipeline()
	text, empty := "", queue(t, p, "SELECT ''::text", nil)
	if err := p.Send(t.Context()); err != nil {
		t.Error(err)
	}
	if err := empty.QueryRow().Scan(&text); err != nil || text != "" {
		t.Errorf("the only value, an empty one, is %q (%v)", text, err)
	}
	p = db.Pool.Pipeline()
	if _, err := p.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a pipeline took a statement that is not in a batch")
	}
	if _, err := p.Query(t.Context(), "SELECT 1"); err == nil {
		t.Error("a pipeline took a query that is not in a batch")
	}
	if err := p.QueryRow(t.Context(), "SELECT 1").Scan(new(int)); err == nil {
		t.Error("a pipeline took a row that is not in a batch")
	}
	p = db.Pool.Pipeline()
	queue(t, p, "DO $$ BEGIN RAISE EXCEPTION 'no such statement' USING ERRCODE = '26000'; END $$", nil)
	if err := p.Send(t.Context()); err == nil || !strings.Contains(fmt.Sprint(err), "database.pooler") {
		t.Errorf("an unknown statement gave %v, want a hint at the pooler", err)
	}
}

// Closed pipelines leave their room to others. Each one still reads its own rows, NULLs and long texts among them.
func TestPipelinesReadTheirOwnRows(t *testing.T) {
	t.Parallel()
	db, err := pg.Open(t.Context(), pg.Options{URL: sqltest.URL(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	const statement = "SELECT CASE WHEN n % 3 > 0 THEN repeat(chr(97 + n % 26), $2 * n) END FROM generate_series(1, $1::int) n ORDER BY n"
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for round := range 25 {
				p := db.Pool.Pipeline()
				rows, width := (worker+round)%7, 1+worker*round
				first, none := queue(t, p, statement, []any{rows, width}), queue(t, p, statement, []any{0, width})
				last := queue(t, p, statement, []any{rows + 1, 1})
				if err := p.Send(t.Context()); err != nil {
					t.Error(err)
					return
				}
				for i, one := range []struct {
					results     pgx.BatchResults
					rows, width int
				}{{first, rows, width}, {none, 0, width}, {last, rows + 1, 1}} {
					got := resultsOf[*string](t, one.results)
					if len(got) != one.rows {
						t.Errorf("statement %d has %d rows, want %d", i, len(got), one.rows)
					}
					for n, text := range got {
						if n++; (text == nil) != (n%3 == 0) || text != nil && *text != strings.Repeat(string(rune('a'+n%26)), one.width*n) {
							t.Errorf("row %d of statement %d is another one's", n, i)
						}
					}
				}
				p.Close()
			}
		})
	}
	all.Wait()
}
