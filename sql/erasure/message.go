package erasure

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/similarity"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// MessagesBefore implements memory.Erasures.
func (s *Store) MessagesBefore(
	ctx context.Context, key sessions.Key, person sessions.UserID, event int64, limit int,
) ([]sessions.Event, error) {
	if person == "" {
		return nil, nil
	}
	ids, err := s.identities.IDs(ctx, s.db.Pool, pg.RobotOf(key), person)
	if err != nil {
		return nil, fmt.Errorf("listing a person's messages: %w", err)
	}
	rows, err := s.db.Q.MessagesBefore(ctx, s.db.Pool, &dbsqlc.MessagesBeforeParams{
		SessionKey: key, People: ids, BeforeID: event, Erased: sessions.ErasedText, MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing a person's messages: %w", err)
	}
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		e, err := convert.Message(r)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// ForgetMessage implements memory.Erasures.
func (s *Store) ForgetMessage(ctx context.Context, event int64, from memory.Asking) (memory.Forgotten, error) {
	var done memory.Forgotten
	key := from.Lease.Key
	ctx = s.releaseWhileWaiting(ctx, from.Lease)
	err := retryOn(errStale, func(final bool) error {
		m := &messageErasure{store: s, event: event, from: from}
		if err := m.prepareDraft(ctx, final); err != nil {
			return err
		}
		return s.db.WithSession(ctx, key, func(tx pgx.Tx, row *dbsqlc.Session) error {
			done = memory.Forgotten{Lease: from.Lease} // it may run more than once
			return m.eraseLocked(ctx, tx, row, &done)
		}, m.readers...)
	})
	if err != nil {
		return memory.Forgotten{Lease: from.Lease}, fmt.Errorf("forgetting message %d: %w", event, pg.AsRefused(err))
	}
	return done, s.awaitFrames(ctx)
}

// messageErasure is an erasure of one message, with its answer and what it set.
type messageErasure struct {
	store   *Store
	event   int64
	from    memory.Asking
	like    similarity.Set
	log     *logReading
	draft   *summaryDraft
	readers []sessions.Key // sessions that read the memories from it
}

func (m *messageErasure) prepareDraft(ctx context.Context, final bool) error {
	key := m.from.Lease.Key
	said, err := m.readMessage(ctx, m.store.db.Pool)
	if err != nil {
		return err
	}
	m.like = similarity.New()
	m.like.AddSaying(said.Content)
	m.like.AddIdentifiers(said.Content)
	texts, err := m.store.db.Q.ScheduleTexts(ctx, m.store.db.Pool, &dbsqlc.ScheduleTextsParams{SessionKey: key, Event: m.event})
	if err != nil {
		return err
	}
	for _, text := range texts { // lists of reminders show them without the words beside
		m.like.AddSaying(text)
	}
	places, texts, err := m.scheduledMessages(ctx, m.store.db.Pool)
	if err != nil {
		return err
	}
	for _, text := range texts {
		m.like.AddSaying(text)
	}
	m.log = newReading(key, func(e *dbsqlc.LogWalkRow) bool {
		_, scheduled := places[e.ID]
		return scheduled || e.ID == m.event
	}, m.like.Repeats)
	if m.log.decided, err = decidedFor(ctx, m.store, m.store.db.Pool, key, nil, m.event); err != nil {
		return err
	}
	if err := m.store.readLog(ctx, m.store.db.Pool, m.log); err != nil {
		return err
	}
	ids, gone, err := m.factsOfMessage(ctx, m.store.db.Pool, said)
	if err != nil {
		return err
	}
	seqs, _, _ := placesOf(m.log.found)
	digests, err := m.store.digestReaders(ctx, key, seqs)
	if err != nil {
		return err
	}
	if m.readers, err = m.store.readersOf(ctx, ids); err != nil {
		return err
	}
	m.readers = append(m.readers, digests...)
	m.draft, err = m.store.draftSummaries(ctx, key, seqs, gone, final)
	return err
}

func (m *messageErasure) readMessage(ctx context.Context, db dbsqlc.DBTX) (dbsqlc.MessageSaidRow, error) {
	said, err := m.store.db.Q.MessageSaid(ctx, db, &dbsqlc.MessageSaidParams{SessionKey: m.from.Lease.Key, ID: m.event, Erased: sessions.ErasedText})
	return said, pg.AsNotFound(err)
}

// scheduledMessages has the places, by id, and the words of messages of schedules, which the message set.
func (m *messageErasure) scheduledMessages(ctx context.Context, db dbsqlc.DBTX) (places map[int64]int64, texts []string, err error) {
	rows, err := m.store.db.Q.ScheduledBy(ctx, db, &dbsqlc.ScheduledByParams{SessionKey: m.from.Lease.Key, Event: m.event})
	places = make(map[int64]int64, len(rows))
	for _, r := range rows {
		places[r.ID] = r.Seq
		words := r.Content
		if _, behind, ok := strings.Cut(words, "\n"); ok { // the lead has the time
			words = behind
		}
		texts = append(texts, words)
	}
	return places, texts, err
}

// factsOfMessage are the memories from the message; gone must not be repeated.
func (m *messageErasure) factsOfMessage(
	ctx context.Context, db dbsqlc.DBTX, said dbsqlc.MessageSaidRow,
) (ids []int64, gone goneContent, err error) {
	drawn, err := m.store.newFactPlan(m.from, m.like).memoriesFrom(ctx, db, m.from.Lease.Key, said)
	gone = goneContent{repeats: m.like.Repeats, own: true}
	for _, f := range drawn {
		ids, gone.facts = append(ids, f.ID), append(gone.facts, f.Content)
	}
	return ids, gone, err
}

func (m *messageErasure) eraseLocked(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, done *memory.Forgotten) error {
	if err := m.store.awaitSend(ctx, tx, row.SessionKey); err != nil {
		return err
	}
	said, err := m.readMessage(ctx, tx)
	if err != nil {
		return err
	}
	if m.log.decided, err = decidedFor(ctx, m.store, tx, row.SessionKey, nil, m.event); err != nil {
		return err
	}
	if err := m.store.readRest(ctx, tx, row, m.log); err != nil {
		return err
	}
	events := slices.Clone(m.log.found)
	places, _, err := m.scheduledMessages(ctx, tx)
	if err != nil {
		return err
	}
	places[m.event] = said.Seq
	for id, seq := range places {
		if seq == 0 {
			events = append(events, erasedEvent{aside: id, message: true})
		}
	}
	ids, gone, err := m.factsOfMessage(ctx, tx, said)
	if err != nil {
		return err
	}
	if err := m.store.wipeEvents(ctx, tx, row, events, gone, m.draft, m.from, done); err != nil {
		return err
	}
	key := m.from.Lease.Key
	if err := m.store.forgetFacts(ctx, tx, ids, key, done); err != nil {
		return err
	}
	return m.store.db.Q.AskingMark(ctx, tx, &dbsqlc.AskingMarkParams{
		SessionKey: key, Asked: m.from.Event, Content: memory.ForgetLastDone(m.from.Language), Outcome: string(sessions.ErasedAll),
	})
}

// memoriesFrom includes memories that no other message of the person can be the source of. A message without a place is in no
// range, yet its broken turn may have saved a memory of it.
func (f *factPlan) memoriesFrom(
	ctx context.Context, db dbsqlc.DBTX, key sessions.Key, said dbsqlc.MessageSaidRow,
) ([]dbsqlc.MemorySourceRow, error) {
	rows, err := f.store.db.Q.MemoriesBeside(ctx, db, &dbsqlc.MemoriesBesideParams{SessionKey: key, Ids: []int64{}})
	if err != nil {
		return nil, err
	}
	ids, err := f.store.identities.IDs(ctx, db, pg.RobotOf(key), said.SenderID)
	if err != nil {
		return nil, err
	}
	var list []dbsqlc.MemorySourceRow
	for _, row := range rows {
		if row.SaidBy != "" && !slices.Contains(ids, string(row.SaidBy)) {
			continue
		}
		m, err := f.withPlace(ctx, db, dbsqlc.MemorySourceRow(row))
		if err != nil {
			return nil, err
		}
		if seq := said.Seq; seq != 0 && m.EndSeq != 0 && (seq < m.StartSeq || m.EndSeq < seq) {
			continue
		}
		fact := similarity.New()
		fact.AddSaying(m.Content)
		if said.Seq != 0 && m.StartSeq == m.EndSeq && m.EndSeq == said.Seq || fact.RepeatsSaying(said.Content) || f.like.Repeats(m.Content) {
			list = append(list, m)
		}
	}
	return list, nil
}
