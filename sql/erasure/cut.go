package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// endTerms ends the terms of locked sessions; their owners stay. Open turns and upkeep are counted as cut, and turns lose their marks. It wakes
// replicas for turns, which end at once, waiting messages and unsent replies. Without spare a turn may have lost its message before. With
// spare it returns a [pg.OpenWork] for running work that was cut too often.
func (s *Store) endTerms(ctx context.Context, tx pgx.Tx, spare bool, keys ...sessions.Key) error {
	if len(keys) == 0 {
		return nil
	}
	asked := make([]*dbsqlc.SessionsWorkParams, len(keys))
	for i, key := range keys {
		asked[i] = &dbsqlc.SessionsWorkParams{SessionKey: key, TtlSeconds: s.db.TTL.Seconds()}
	}
	var cuts []*dbsqlc.SessionsCutParams
	var wakes []string
	var open *pg.OpenWork
	if err := pg.Done(func(take func(int, error)) {
		s.db.Q.SessionsWork(ctx, tx, asked).QueryRow(func(i int, w dbsqlc.SessionsWorkRow, err error) {
			take(i, err)
			cuts = append(cuts, &dbsqlc.SessionsCutParams{SessionKey: w.SessionKey, Turn: w.Turn, Upkeep: w.Upkeep})
			if w.Messages || w.Replies || w.Alive && !spare {
				wakes = append(wakes, "|"+string(w.SessionKey))
			}
			if open == nil && w.Alive && (w.Turn && w.CutTurns >= sessions.MaxCuts || w.Upkeep && w.CutUpkeep >= sessions.MaxCuts) {
				open = &pg.OpenWork{Key: w.SessionKey, Term: w.LeaseTerm}
			}
		})
	}); err != nil {
		return err
	}
	if spare && open != nil {
		return open
	}
	if err := pg.Done(s.db.Q.SessionsCut(ctx, tx, cuts).Exec); err != nil {
		return err
	}
	if err := pg.Done(s.db.Q.TurnsUnmark(ctx, tx, keys).Exec); err != nil {
		return err
	}
	for _, payload := range wakes {
		if err := s.db.Q.Notify(ctx, tx, payload); err != nil {
			return err
		}
	}
	return nil
}
