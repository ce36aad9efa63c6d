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

// ScopeOf implements sessions.Scopes, repeated by [pg.DB.RetryWhileDown].
func (s *Scopes) ScopeOf(ctx context.Context, group sessions.Key) (chosen sessions.Scope, err error) {
	err = s.db.RetryWhileDown(ctx, func() error {
		p := s.db.Pool.Pipeline()
		scopes := s.db.Q.ScopeOf(ctx, p, []string{string(group)})
		if err := p.Send(ctx); err != nil {
			return err
		}
		chosen, err = chosenIn(scopes)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the scope of a group: %w", err)
	}
	return chosen, nil
}

func chosenIn(scopes *dbsqlc.ScopeOfBatchResults) (chosen sessions.Scope, err error) {
	rows, err := pg.Found(scopes.QueryRow)
	for _, scope := range rows {
		chosen = sessions.Scope(scope)
	}
	return chosen, err
}

// PlaceOf implements sessions.Scopes, repeated by [pg.DB.RetryWhileDown].
func (s *Scopes) PlaceOf(ctx context.Context, m sessions.Message, among []sessions.Key) (place sessions.Place, err error) {
	err = s.db.RetryWhileDown(ctx, func() (err error) {
		place, err = s.placeOf(ctx, m, among)
		return err
	})
	if err != nil {
		return sessions.Place{}, fmt.Errorf("looking up a message in %d sessions: %w", len(among), err)
	}
	return place, nil
}

// placeOf reads which scope was chosen for the group, and which of the possible sessions knows the message. A change of the scope
// must not answer a repeated delivery in another session.
func (s *Scopes) placeOf(ctx context.Context, m sessions.Message, among []sessions.Key) (sessions.Place, error) {
	id := pg.Clean(string(m.ID))
	params := make([]*dbsqlc.MessagePlaceParams, len(among))
	for i, key := range among {
		params[i] = &dbsqlc.MessagePlaceParams{
			SessionKey: key, MsgID: id, Senders: sendersOf(m),
			Mark: pg.DeletionMark(pg.ConversationKey(key), id), SessionMark: pg.DeletionMark(key, id),
		}
	}
	p := s.db.Pool.Pipeline()
	scopes, places := s.db.Q.ScopeOf(ctx, p, []string{string(sessions.ScopeGroup.Key(m))}), s.db.Q.MessagePlace(ctx, p, params)
	if err := p.Send(ctx); err != nil {
		return sessions.Place{}, err
	}
	var place sessions.Place
	var err error
	if place.Chosen, err = chosenIn(scopes); err != nil {
		return sessions.Place{}, err
	}
	rows, err := pg.Found(places.QueryRow)
	var newest int64
	for i, row := range rows {
		if row.IsKnown && place.Earlier == "" {
			place.Earlier = among[i]
		}
		if row.Waiting > newest {
			newest, place.Waiting = row.Waiting, among[i]
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

// sendersOf lists the ids of a message's sender.
func sendersOf(m sessions.Message) []string {
	return []string{pg.Clean(string(m.SenderID)), pg.Clean(string(m.EncryptedID))}
}
