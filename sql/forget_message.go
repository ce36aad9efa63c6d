package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// ForgetMessage implements memory.Rights.
func (s *Store) ForgetMessage(ctx context.Context, seq int64, from memory.Asking) (memory.Forgotten, error) {
	var done memory.Forgotten
	key := from.Lease.Key
	err := s.locked(ctx, key, func(tx pgx.Tx, row *dbsqlc.Session) error {
		done = memory.Forgotten{Lease: from.Lease} // it may run more than once
		said, err := s.q.EventsSaid(ctx, tx, &dbsqlc.EventsSaidParams{SessionKey: key, StartSeq: seq, EndSeq: seq, Erased: sessions.ErasedText})
		if err != nil {
			return err
		}
		if len(said) == 0 {
			return sessions.ErrNotFound
		}
		like := newLikeness()
		like.say(said[0].Content)
		like.identify(said[0].Content)
		events, err := s.places(ctx, tx, key, func(e *dbsqlc.LogWalkRow) bool { return e.Seq == seq }, like.in)
		if err != nil {
			return err
		}
		u := &unsaying{Store: s, db: tx, from: from, like: like, turns: map[sessions.Key][]turnSpan{}, done: &done}
		ids, err := u.drawn(ctx, key, seq, said[0])
		if err != nil {
			return err
		}
		if err := s.wipe(ctx, tx, row, events, like.in, from, &done); err != nil {
			return err
		}
		return s.forgetFacts(ctx, tx, ids, key, &done)
	})
	if err != nil {
		return memory.Forgotten{Lease: from.Lease}, fmt.Errorf("forgetting message %d of session %s: %w", seq, key, refused(err))
	}
	return done, nil
}

// drawn lists the memories that a message said: those that no other message of its person can have said, and those that
// repeat it.
func (u *unsaying) drawn(ctx context.Context, key sessions.Key, seq int64, said dbsqlc.EventsSaidRow) ([]int64, error) {
	rows, err := u.q.MemoriesBeside(ctx, u.db, &dbsqlc.MemoriesBesideParams{SessionKey: key, Ids: []int64{}})
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, row := range rows {
		if row.SaidBy != "" && row.SaidBy != said.SenderID {
			continue
		}
		m, err := u.located(ctx, dbsqlc.MemorySourceRow(row))
		if err != nil {
			return nil, err
		}
		if m.EndSeq != 0 && (seq < m.StartSeq || m.EndSeq < seq) {
			continue
		}
		fact := newLikeness()
		fact.say(m.Content)
		if m.StartSeq == m.EndSeq && m.EndSeq == seq || fact.tells(said.Content) || u.like.in(m.Content) {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}
