package pg

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The SQLSTATE of a database error decides about its retry, in three places:
//
//	refused      22 23 54             never repeated: the data break a rule, and the message is set aside or reported
//	clashed      40001 40P01          repeated by the store itself, within milliseconds
//	all others                        repeated by the caller, with pauses up to a second, without a limit
//	Unavailable  of these             waited for at the start, too, where all others end the process: 08 53 57P 58
//	                                  25006 25P03 40 55P03 57014, and connections that can't be made or that broke off

// readOnly is the code of a write to a server that stands by.
const readOnly = "25006"

// ErrReadOnly says that the server answers, but accepts no writes.
var ErrReadOnly = errors.New("the database is read-only")

// Unavailable reports whether waiting may resolve a failure to reach or use the server. A wrong password, a missing
// database or a broken migration is none.
func Unavailable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.ContainsFunc(temporaryCodes, func(class string) bool { return len(pg.Code) == 5 && pg.Code[:len(class)] == class })
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrReadOnly)
}

// Prefixes of broken connections, conflicts, exhausted resources (a full disk, too many connections), unavailable
// locks, timeouts and idle transactions. They include servers that start, stop, stand by or can't read their files.
var temporaryCodes = []string{"08", "40", "53", "55P03", "57014", "57P", "58", "25P03", readOnly}

const (
	// DivisionByZero is the code by which a statement ends its pipeline; see TurnWhole.
	DivisionByZero = "22012"
	// RootOfNegative is that of a second condition in such a statement; see MessageKept.
	RootOfNegative = "2201F"
	// LockNotAvailable is the code of a statement that does not wait for a lock; see TurnRead.
	LockNotAvailable = "55P03"
)

// IsCode reports whether an error has a SQLSTATE.
func IsCode(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}

// IsConstraint reports whether an error is a violation of a constraint, or of the one of a shard, whose name ends in its number.
func IsConstraint(err error, name string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	shard, has := strings.CutPrefix(pg.ConstraintName, name)
	return has && strings.Trim(strings.TrimPrefix(shard, "_"), "0123456789") == ""
}
