package gateway

import (
	"errors"
	"fmt"
	"testing"

	"ebb/sql/pg"
)

// /readyz names the database's fault, without the server's message.
func TestDatabaseReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "<nil>"},
		{fmt.Errorf("asking: %w", pg.ErrReadOnly), "the database is read-only"},
		{errors.New("password of ebb at 10.0.0.1"), "the database does not answer"},
	} {
		if got := fmt.Sprint(databaseReason(c.err)); got != c.want {
			t.Errorf("for %v it says %q, want %q", c.err, got, c.want)
		}
	}
}
