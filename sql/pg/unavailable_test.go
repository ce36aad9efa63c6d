package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A server that is not there is waited for; one that says no is not.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	open := func(url string) error {
		s, err := sql.Open(ctx, sql.Options{URL: url, MaxConns: 1})
		if err == nil {
			s.Close()
		}
		return err
	}
	address := sqltest.URL(t)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nobody listens":   {open("postgres://x@127.0.0.1:1/x"), true},
		"unknown database": {open(storetest.MissingDatabase(t, address)), false},
		"any other error":  {errors.New("x"), false},
	} {
		if c.err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := pg.Unavailable(c.err); got != c.want {
			t.Errorf("%s: %v for %v", name, got, c.err)
		}
	}
}
