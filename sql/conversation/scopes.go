package conversation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Scopes keeps the scopes of groups.
type Scopes struct{ *pg.DB }

// NewScopes returns the scopes of a database.
func NewScopes(db *pg.DB) *Scopes { return &Scopes{db} }

// PlaceOf implements sessions.Scopes, repeated by [pg.DB.RetryWhileDown].
func (s *Scopes) PlaceOf(ctx context.Context, q sessions.PlaceQuery) (sessions.Place, error) {
	p := &dbsqlc.MessagePlaceParams{
		GroupKey: string(q.Group), SessionKeys: textsOf(q.Keys), Senders: textsOf(q.Senders), MsgID: pg.Clean(string(q.ID)),
	}
	var row *dbsqlc.MessagePlaceRow
	err := s.RetryWhileDown(ctx, func() (err error) {
		found, err := s.Q.MessagePlace(ctx, s.Pool, p)
		row = &found
		return err
	})
	if err != nil {
		return sessions.Place{}, fmt.Errorf("looking up a message in %d sessions: %w", len(q.Keys), err)
	}
	return sessions.Place{Chosen: sessions.Scope(row.Chosen), Earlier: sessions.Key(row.Earlier), Waiting: sessions.Key(row.Waiting)}, nil
}

// ChooseScope implements sessions.Scopes.
func (s *Scopes) ChooseScope(ctx context.Context, l sessions.Lease, scope sessions.Scope) error {
	group := string(l.Key.Group())
	err := s.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		if scope == "" {
			return s.Q.ScopeRemove(ctx, tx, group)
		}
		return s.Q.ScopeChoose(ctx, tx, &dbsqlc.ScopeChooseParams{GroupKey: group, Scope: string(scope)})
	})
	if err != nil {
		return fmt.Errorf("choosing the scope of the group: %w", pg.AsRefused(err))
	}
	return nil
}

// A nil slice would be NULL.
func textsOf[T ~string](all []T) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = pg.Clean(string(one))
	}
	return texts
}
