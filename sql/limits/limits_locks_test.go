package limits_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/storetest"
)

// A turn that waits for a window which another turn begins has locked no later one. The other turn locks that next: the other
// order would be a deadlock.
func TestWindowsOfATurnAreLockedInOrder(t *testing.T) {
	t.Parallel()
	s, pool, _ := storetest.OpenChat(t)
	limits := sessions.Limits{PersonTurns: 5}
	admit := func(people ...sessions.UserID) error {
		_, err := s.Limits.Admit(t.Context(), limits, sessions.Askers{Robot: storetest.Robot, People: people})
		return err
	}
	if err := admit("alice", "bob"); err != nil {
		t.Fatal(err)
	}
	rows := storetest.Must[pgx.Rows](t)(pool.Query(t.Context(), "SELECT subject FROM limit_windows ORDER BY subject"))
	subjects := storetest.Must[[][]byte](t)(pgx.CollectRows(rows, pgx.RowTo[[]byte]))
	if len(subjects) != 2 {
		t.Fatalf("%d windows", len(subjects))
	}
	if _, err := pool.Exec(t.Context(), "DELETE FROM limit_windows WHERE subject = $1", subjects[0]); err != nil {
		t.Fatal(err)
	}
	other := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
	defer func() { _ = other.Rollback(t.Context()) }()
	if _, err := other.Exec(t.Context(), "INSERT INTO limit_windows (subject, ends_at, used) VALUES ($1, now(), 0)", subjects[0]); err != nil {
		t.Fatal(err)
	}
	admitted := make(chan error, 1)
	go func() { admitted <- admit("alice", "bob") }()
	storetest.AwaitBlocked(t, pool)
	tag, err := other.Exec(t.Context(), "SELECT FROM limit_windows WHERE subject = $1 FOR UPDATE NOWAIT", subjects[1])
	if err != nil || tag.RowsAffected() != 1 {
		t.Errorf("the later window was locked first: %v, %v", tag, err)
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-admitted; err != nil {
		t.Fatal(err)
	}
	if n := storetest.Number(t, pool, "SELECT sum(used) FROM limit_windows"); n != 3 {
		t.Errorf("%d turns are counted, want 2 and 1", n)
	}
}
