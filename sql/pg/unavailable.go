package pg

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// What becomes of an error of the database is said by its SQLSTATE, in three places:
//
//	refused      22 23 54             never done again: the data break a rule, and the message is set aside or told of
//	clashed      40001 40P01          done again by the store itself, within milliseconds
//	all others                        done again by the caller, with pauses up to a second, for as long as it takes
//	Unavailable  of these             waited for at the start, too, where all others end the process: 08 53 57P 58
//	                                  25006 25P03 40 55P03 57014, and connections that can't be made or that broke off

// ErrReadOnly says that the server answers, but takes no writes.
var ErrReadOnly = errors.New("the database is read-only")

// Unavailable reports whether err says that the server can't be reached or does no work now, which waiting may mend; a
// wrong password, a missing database or a broken migration is nothing to wait for.
func Unavailable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.ContainsFunc(passing, func(class string) bool { return len(pg.Code) == 5 && pg.Code[:len(class)] == class })
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrReadOnly)
}

// passing are the beginnings of the codes of what passes: broken connections, clashes, resources used up (a full disk and
// too many connections among them), locks that are not to be had, statements that took too long, transactions that idled, servers that start, stop,
// stand by or can't read their files.
var passing = []string{"08", "40", "53", "55P03", "57014", "57P", "58", "25P03", readOnly}
