package calls

import (
	"context"

	"ebb/sessions"
)

// ReserveEnd counts the call of an attempt to end an abandoned card. The first attempt has the prepaid call. A
// process that ended during its attempt may have made that call: a later attempt counts another one if the month
// permits, and is made in any case.
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
