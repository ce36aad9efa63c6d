package sql_test

import (
	"strings"
	"testing"

	"ebb/sql"
)

// A wrong address is described by its fault, and no part of it is shown.
func TestAddressFault(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:p@h:5432/d":                           "",
		"postgresql://h/d":                                  "",
		"postgres://h1,h2:5433/d?target_session_attrs=any":  "",
		"postgres://u@/d?host=/run/postgresql":              "",
		"host=h user=u password=p dbname=d":                 "",
		"postgres://u:p%2F%40%23%3Fq@h/d":                   "",
		"postgres://h/d?sslmode=verify-full&sslrootcert=/x": "", // the file of another machine
		"postgres://u:hun/ter2@h/d":                         "an address with a / in its user or password",
		"postgres://u:hun#ter2@h/d":                         "", // the driver reads it
		"postgres://u:hun?ter2@h/d":                         "",
		"postgres://u:hun@ter2@h/d":                         "an address with a @ in its user or password",
		"postgres://u:hun%ter2@h/d":                         "an address with a % in its user or password",
		"postgres://u:hun%":                                 "an address with a % in its user or password",
		"postgres://u:hunter2@h:port/d":                     "a port that is not a number",
		"postgres://u:hunter2@h1:5432,h2:x/d":               "a port that is not a number",
		"postgres://u:hunter2@h/d?sslmode=perhaps":          "an address with a parameter that can't be read",
		"host=h password=hunter2 port=many":                 "keywords and values that can't be read",
		"mysql://u:hunter2@h/d":                             "an address that does not begin with postgres://",
		"hunter2":                                           "a text that is no address",
		"u:hunter2@h:5432/d":                                "a text that is no address",
	} {
		if got := sql.AddressFault(address); got != want || strings.Contains(got, "ter2") {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
