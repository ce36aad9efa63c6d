package sql_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
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
		"unknown database": {open(missing(t, address)), false},
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

// missing is the address of a database that is not there, on the server of another one.
func missing(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/no_such_database"
	return u.String()
}
