package limits_test

import (
	"testing"

	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Windows of limits go after their end, and the key of their hashes with its day.
func TestEndedWindowsExpire(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Execute(t, pool, `INSERT INTO limit_windows (subject, ends_at) VALUES ('open', now() + interval '1 minute'), ('ended', now() - interval '11 minutes')`)
	storetest.Execute(t, pool, `INSERT INTO limit_keys (day, key) VALUES ((now() AT TIME ZONE 'UTC')::date, 'key'), ((now() AT TIME ZONE 'UTC')::date - 2, 'old')`)
	if _, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := pool.QueryRow(t.Context(), "SELECT string_agg(convert_from(subject, 'UTF8'), ' ') FROM limit_windows").Scan(&left); err != nil || left != "open" {
		t.Errorf("%q is left (%v), want the open one", left, err)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM limit_keys"); n != 1 {
		t.Errorf("%d keys are left, want today's", n)
	}
}
