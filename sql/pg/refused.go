package pg

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
)

// AsRefused marks the errors with which the server says that it will never take the data as sessions.ErrRefused: bad
// values, broken constraints, limits of its formats. Whatever may pass by itself stays as it is: lost connections,
// timeouts, serialization failures, a server that stops or has no resources left, a schema that is not there yet.
func AsRefused(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(pg.Code) != 5 {
		return err
	}
	switch pg.Code[:2] {
	case "22", "23", "54": // data exception, integrity constraint violation, program limit exceeded
		return fmt.Errorf("%w: %w", sessions.ErrRefused, err)
	}
	return err
}
