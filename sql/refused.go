package sql

import (
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
)

// refused marks the errors with which the server says that it will never take the data as sessions.ErrRefused: bad
// values, broken constraints, limits of its formats. Whatever may pass by itself stays as it is: lost connections,
// timeouts, serialization failures, a server that stops or has no resources left, a schema that is not there yet.
func refused(err error) error {
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

// count is n as the integer columns hold it, never negative. Figures come from providers, who say what they like, and no
// figure is worth losing a turn for.
func count(n int) int { return min(max(n, 0), math.MaxInt32) }

func counts(list []int) []int {
	c := make([]int, 0, len(list))
	for _, n := range list {
		c = append(c, count(n))
	}
	return c
}

// finite is f, or 0 where it is no number that anybody could calculate with.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
