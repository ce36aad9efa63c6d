package sql

import (
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unavailable reports whether err says that the server can't be reached or takes no connections now, which waiting may
// mend; a wrong password, a missing database or a broken migration is nothing to wait for.
func Unavailable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Connection exceptions, resources used up, and a server that starts, stops or stands by.
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, ok := errors.AsType[net.Error](err)
	return ok
}
