package sql_test

import (
	"testing"

	"ebb/sql"
)

func TestValidAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"postgres://u:p@h:5432/d":                           true,
		"postgresql://h/d":                                  true,
		"postgres://h1,h2:5433/d?target_session_attrs=any":  true,
		"postgres://u@/d?host=/run/postgresql":              true,
		"host=h user=u password=p dbname=d":                 true,
		"postgres://u:p%2F%40%23%3Fq@h/d":                   true,
		"postgres://h/d?sslmode=verify-full&sslrootcert=/x": true, // the file of another machine
		"postgres://u:hun/ter2@h/d":                         false,
		"postgres://u:hun@ter2@h/d":                         false,
		"postgres://u:p@h:port/d":                           false,
		"postgres://h/d?sslmode=perhaps":                    false,
		"host=h port=many":                                  false,
		"somewhere":                                         false,
	} {
		if got := sql.ValidAddress(address); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}
