package yardstick_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql/sqltest"
	"ebb/sql/yardstick"
)

func TestYardstickCommitsRowsAndSlowsLaterConnections(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), sqltest.URL(t)
	y, err := yardstick.Open(ctx, url, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	for range 3 {
		if err := y.Commit(ctx, 7); err != nil {
			t.Fatal(err)
		}
	}
	if err := y.Tidy(ctx); err != nil {
		t.Error(err)
	}
	if version, _, err := y.Server(ctx); err != nil || version == "" {
		t.Errorf("the server's version is %q, %v", version, err)
	}
	if err := y.SlowCommits(ctx, 1234); err != nil {
		t.Fatal(err)
	}
	again, err := yardstick.Open(ctx, url, 1) // existing rows are kept
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var n, delay int
	err = conn.QueryRow(ctx, "SELECT n, current_setting('commit_delay')::int FROM yardstick WHERE worker = 7").Scan(&n, &delay)
	if err != nil || n != 3 || delay != 1234 {
		t.Errorf("worker 7 committed %d times, want 3; a commit is delayed by %d, want 1234 (%v)", n, delay, err)
	}
}
