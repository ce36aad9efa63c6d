package pg

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
)

func TestRefusedByCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"22003": true, "22021": true, "23505": true, "23514": true, "54000": true,
		"08006": false, "40001": false, "40P01": false, "42P01": false, "53100": false, "53300": false, "55P03": false,
		"57014": false, "57P01": false, "58030": false, "XX000": false, "": false,
	} {
		err := fmt.Errorf("doing it: %w", &pgconn.PgError{Code: code})
		got := AsRefused(err)
		if errors.Is(got, sessions.ErrRefused) != want {
			t.Errorf("%s: got %v, want permanent: %t", code, got, want)
		}
		if !errors.Is(got, err) {
			t.Errorf("%s: the cause is gone from %v", code, got)
		}
	}
	for _, err := range []error{nil, io.ErrUnexpectedEOF, sessions.ErrLeaseLost} {
		if got := AsRefused(err); !errors.Is(got, err) || errors.Is(got, sessions.ErrRefused) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
