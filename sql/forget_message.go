package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// MessagesBefore implements memory.Rights.
func (s *Store) MessagesBefore(
	ctx context.Context, key sessions.Key, person sessions.UserID, event int64, limit int,
) ([]sessions.Event, error) {
	if person == "" {
		return nil, nil
	}
	rows, err := s.q.MessagesBefore(ctx, s.pool, &dbsqlc.MessagesBeforeParams{
		SessionKey: key, Person: string(person), BeforeID: event, Erased: sessions.ErasedText, MaxRows: count(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing a person's messages of session %s: %w", key, err)
	}
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		e, err := toEvent(&dbsqlc.Event{
			SessionKey: r.SessionKey, ID: r.ID, Seq: r.Seq, Role: sessions.RoleUser, Content: r.Content, SenderID: r.SenderID,
			SenderNick: r.SenderNick, State: r.State, Message: r.Message, CreatedAt: r.CreatedAt,
		})
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// ForgetMessage implements memory.Rights.
func (s *Store) ForgetMessage(ctx context.Context, event int64, from memory.Asking) (memory.Forgotten, error) {
	var done memory.Forgotten
	key := from.Lease.Key
	err := s.locked(ctx, key, func(tx pgx.Tx, row *dbsqlc.Session) error {
		done = memory.Forgotten{Lease: from.Lease} // it may run more than once
		said, err := s.q.MessageSaid(ctx, tx, &dbsqlc.MessageSaidParams{SessionKey: key, ID: event, Erased: sessions.ErasedText})
		if err != nil {
			return found(err)
		}
		like := newLikeness()
		like.say(said.Content)
		like.identify(said.Content)
		events, err := s.places(ctx, tx, key, func(e *dbsqlc.LogWalkRow) bool { return e.Seq == said.Seq }, like.in)
		if err != nil {
			return err
		}
		if said.Seq == 0 {
			events = append(events, wiped{aside: event, message: true})
		}
		u := &unsaying{Store: s, db: tx, from: from, like: like, turns: map[sessions.Key][]turnSpan{}, done: &done}
		drawn, err := u.drawn(ctx, key, said)
		if err != nil {
			return err
		}
		gone := unsaid{repeats: like.in}
		ids := make([]int64, len(drawn))
		for i, m := range drawn {
			ids[i], gone.facts = m.ID, append(gone.facts, m.Content)
		}
		if err := s.wipe(ctx, tx, row, events, gone, from, &done); err != nil {
			return err
		}
		if err := s.forgetFacts(ctx, tx, ids, key, &done); err != nil {
			return err
		}
		return s.q.AskingMark(ctx, tx, &dbsqlc.AskingMarkParams{SessionKey: key, Asked: from.Event, Content: memory.ForgetLastDone(from.Language)})
	})
	if err != nil {
		return memory.Forgotten{Lease: from.Lease}, fmt.Errorf("forgetting message %d of session %s: %w", event, key, refused(err))
	}
	return done, nil
}

// drawn lists the memories that a message said: those that no other message of its person can have said, and those that
// repeat it. A message without a place is in no range: a turn that it broke may have saved what it said.
func (u *unsaying) drawn(ctx context.Context, key sessions.Key, said dbsqlc.MessageSaidRow) ([]dbsqlc.MemorySourceRow, error) {
	rows, err := u.q.MemoriesBeside(ctx, u.db, &dbsqlc.MemoriesBesideParams{SessionKey: key, Ids: []int64{}})
	if err != nil {
		return nil, err
	}
	var list []dbsqlc.MemorySourceRow
	for _, row := range rows {
		if row.SaidBy != "" && row.SaidBy != said.SenderID {
			continue
		}
		m, err := u.located(ctx, dbsqlc.MemorySourceRow(row))
		if err != nil {
			return nil, err
		}
		if seq := said.Seq; seq != 0 && m.EndSeq != 0 && (seq < m.StartSeq || m.EndSeq < seq) {
			continue
		}
		fact := newLikeness()
		fact.say(m.Content)
		if said.Seq != 0 && m.StartSeq == m.EndSeq && m.EndSeq == said.Seq || fact.tells(said.Content) || u.like.in(m.Content) {
			list = append(list, m)
		}
	}
	return list, nil
}
