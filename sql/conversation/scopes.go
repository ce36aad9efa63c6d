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
type Scopes struct{ db *pg.DB }

// NewScopes returns the scopes of a database.
func NewScopes(db *pg.DB) *Scopes { return &Scopes{db} }

// PlaceOf implements sessions.Scopes, repeated by [pg.DB.RetryWhileDown].
func (s *Scopes) PlaceOf(ctx context.Context, q sessions.PlaceQuery) (place sessions.Place, err error) {
	err = s.db.RetryWhileDown(ctx, func() (err error) {
		place, err = s.placeOf(ctx, q)
		return err
	})
	if err != nil {
		return sessions.Place{}, fmt.Errorf("looking up a message in %d sessions: %w", len(q.Keys), err)
	}
	return place, nil
}

// placeOf reads which scope was chosen for the group, and which of the possible sessions knows the message. A change of the scope
// must not answer a repeated delivery in another session.
func (s *Scopes) placeOf(ctx context.Context, q sessions.PlaceQuery) (sessions.Place, error) {
	id := pg.Clean(string(q.ID))
	params := make([]*dbsqlc.MessagePlaceParams, len(q.Keys))
	for i, key := range q.Keys {
		params[i] = &dbsqlc.MessagePlaceParams{
			SessionKey: key, MsgID: id, Senders: textsOf(q.Senders),
			Mark: pg.DeletionMark(pg.ConversationKey(key), id), SessionMark: pg.DeletionMark(key, id),
		}
	}
	p := s.db.Pool.Pipeline()
	scopes, places := s.db.Q.ScopeOf(ctx, p, []string{string(q.Group)}), s.db.Q.MessagePlace(ctx, p, params)
	if err := p.Send(ctx); err != nil {
		return sessions.Place{}, err
	}
	chosen, err := pg.Found(scopes.QueryRow)
	if err != nil {
		return sessions.Place{}, err
	}
	var place sessions.Place
	for _, scope := range chosen {
		place.Chosen = sessions.Scope(scope)
	}
	rows, err := pg.Found(places.QueryRow)
	var newest int64
	for i, row := range rows {
		if row.IsKnown && place.Earlier == "" {
			place.Earlier = q.Keys[i]
		}
		if row.Waiting > newest {
			newest, place.Waiting = row.Waiting, q.Keys[i]
		}
	}
	return place, err
}

// ChooseScope implements sessions.Scopes.
func (s *Scopes) ChooseScope(ctx context.Context, l sessions.Lease, scope sessions.Scope) error {
	group := string(l.Key.Group())
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		if scope == "" {
			return s.db.Q.ScopeRemove(ctx, tx, group)
		}
		return s.db.Q.ScopeChoose(ctx, tx, &dbsqlc.ScopeChooseParams{GroupKey: group, Scope: string(scope)})
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
