package calls

import (
	"context"

	"ebb/sessions"
)

// ReserveEnd counts the call of an attempt to end an abandoned card, before it is made. The first attempt has the
// prepaid call. A later attempt with a prepaid call follows a process that ended during its own, and may have made
// that call. Another one is counted if the month permits, and is made in any case.
func (g *Governor) ReserveEnd(ctx context.Context, c sessions.Card, api API) (Reservation, error) {
	if c.Prepaid && c.Tries <= 1 {
		return Reservation{}, nil
	}
	r, err := g.Reserve(ctx, Finish, api)
	if c.Prepaid {
		return r, nil
	}
	return r, err
}
