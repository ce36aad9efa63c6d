package pg

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
)

// AsRefused marks errors that refuse the data permanently as sessions.ErrRefused: bad values, violated constraints,
// exceeded limits. Temporary failures stay unmarked, among them a missing schema.
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

// Require returns err, or none if the statement changed no row.
func Require(rows int64, err, none error) error {
	if err == nil && rows == 0 {
		return none
	}
	return err
}
