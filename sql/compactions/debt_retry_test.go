package compactions_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A retry ends the pause of an owed flush.
func TestDebtRetry(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	storetest.Execute(t, pool, "INSERT INTO flush_debts (session_key, from_seq, through_seq, failures) VALUES ($1, 0, 1, 5)", c.Reader.Key)
	if err := s.Flushes.RetryDebt(t.Context(), c.Reader.Key); err != nil {
		t.Fatal(err)
	}
	if n := storetest.Collect(t, pool, "SELECT failures FROM flush_debts", pgx.RowTo[int]); n[0] != 0 {
		t.Errorf("%d failures are left", n[0])
	}
	if err := s.Flushes.RetryDebt(t.Context(), "r/missing"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a retry without a debt gave %v", err)
	}
}
