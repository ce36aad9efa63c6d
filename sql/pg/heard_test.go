package pg

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
)

// Classes of errors: refused permanently, retried by the store, waited for at the start.
func TestErrorsAreClassified(t *testing.T) {
	t.Parallel()
	const refuse, again, wait = 1, 2, 4
	for code, want := range map[string]int{
		"08006": wait,         // connection failure
		"08P01": wait,         // a pooler that can't reach the server
		"22021": refuse,       // no character of the encoding
		"23505": refuse,       // a key that is there
		"25P03": wait,         // idle in a transaction for too long
		"25006": wait,         // read-only: demoted, or closed by its keepers
		"26000": 0,            // a statement that another server connection knows
		"28P01": 0,            // wrong password
		"3D000": 0,            // no such database
		"40001": again | wait, // serialization failure
		"40P01": again | wait, // deadlock
		"42501": 0,            // no permission
		"42P01": 0,            // no such table
		"42P05": 0,            // a statement that is there
		"53100": wait,         // full disk
		"53200": wait,         // out of memory
		"53300": wait,         // too many connections
		"54000": refuse,       // larger than an index takes
		"55P03": wait,         // lock_timeout
		"57014": wait,         // statement_timeout
		"57P01": wait,         // admin shutdown
		"57P02": wait,         // crash of another process
		"57P03": wait,         // starting up
		"57P05": wait,         // idle too long
		"58030": wait,         // input or output
		"XX000": 0,            // a fault of the server's
		"":      0,
	} {
		err := fmt.Errorf("doing it: %w", &pgconn.PgError{Code: code})
		got := 0
		if errors.Is(AsRefused(err), sessions.ErrRefused) {
			got |= refuse
		}
		if Clashed(t.Context(), err, 1) {
			got |= again
		}
		if Unavailable(err) {
			got |= wait
		}
		if got != want {
			t.Errorf("%q: refused, done again, waited for: %03b, want %03b", code, got, want)
		}
	}
	if Clashed(t.Context(), &pgconn.PgError{Code: serializationFailure}, maxClashes) {
		t.Error("what clashes for ever is done again for ever")
	}
}
