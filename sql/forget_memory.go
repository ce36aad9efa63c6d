package sql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// wideSource is how many events a memory may be drawn from for all of them to count as what said it.
const wideSource = 8

// maxTelling is how many sessions, besides those where it was said, are looked through for what repeats a memory.
const maxTelling = 200

// unsaying is one memory's forgetting under way.
type unsaying struct {
	*Store
	tx    pgx.Tx
	from  memory.Asking
	rows  []dbsqlc.MemorySourceRow // what goes, with the events that said it
	like  likeness
	turns map[sessions.Key][]turnSpan // of sessions whose turns were asked for
	done  *memory.Forgotten
}

// ForgetMemory implements memory.Rights.
func (s *Store) ForgetMemory(ctx context.Context, id int64, from memory.Asking) (memory.Forgotten, error) {
	var done memory.Forgotten
	err := s.patient(ctx, func(tx pgx.Tx) error {
		done = memory.Forgotten{Lease: from.Lease}
		u := &unsaying{Store: s, tx: tx, from: from, like: newLikeness(), turns: map[sessions.Key][]turnSpan{}, done: &done}
		return u.run(ctx, id)
	})
	if err != nil {
		return memory.Forgotten{}, fmt.Errorf("forgetting memory %d: %w", id, refused(err))
	}
	return done, nil
}

func (u *unsaying) run(ctx context.Context, id int64) error {
	if err := u.values(ctx, id); err != nil {
		return err
	}
	if err := u.beside(ctx); err != nil {
		return err
	}
	keys, err := u.sessions(ctx)
	if err != nil {
		return err
	}
	asking := u.from.Lease.Key
	if u.from.Lease.Owner != "" && !slices.Contains(keys, asking) {
		keys = append(keys, asking)
	}
	for _, key := range slices.Sorted(slices.Values(keys)) { // in one order, so that two such never wait for each other
		if err := u.session(ctx, key); err != nil {
			return fmt.Errorf("session %s: %w", key, err)
		}
	}
	ids, digests := make([]int64, len(u.rows)), []int64{}
	for i, m := range u.rows {
		if ids[i] = m.ID; m.Kind == memory.KindDigest {
			digests = append(digests, m.ID)
		}
	}
	if err := u.q.DigestsDrop(ctx, u.tx, digests); err != nil {
		return err
	}
	return u.forgetFacts(ctx, u.tx, ids, asking, u.done)
}

// values reads the memory and the values that it corrected: a later value is another fact to its people.
func (u *unsaying) values(ctx context.Context, id int64) error {
	chain, err := u.q.MemoryChain(ctx, u.tx, id)
	if err != nil {
		return err
	}
	for _, c := range chain {
		if !c.IsOlder {
			continue
		}
		m, err := u.q.MemorySource(ctx, u.tx, c.ID)
		if err != nil {
			return err
		}
		if err := u.add(ctx, m); err != nil {
			return err
		}
	}
	if len(u.rows) == 0 {
		return sessions.ErrNotFound
	}
	return nil
}

// add takes a memory among what goes, and learns its words and those of the messages that it was drawn from.
func (u *unsaying) add(ctx context.Context, m dbsqlc.MemorySourceRow) error {
	if m.Kind == memory.KindDigest { // it tells what many said: that stays
		u.rows = append(u.rows, m)
		return nil
	}
	m, err := u.located(ctx, m)
	if err != nil {
		return err
	}
	u.rows = append(u.rows, m)
	u.like.learn(m.Content)
	u.like.say(m.Content)
	if m.EndSeq-m.StartSeq >= wideSource {
		return nil
	}
	said, err := u.q.EventsSaid(ctx, u.tx, &dbsqlc.EventsSaidParams{
		SessionKey: m.SourceSession, StartSeq: m.StartSeq, EndSeq: m.EndSeq, Erased: sessions.ErasedText,
	})
	said = slices.DeleteFunc(said, func(e dbsqlc.EventsSaidRow) bool { return m.SaidBy != "" && m.SaidBy != e.SenderID })
	for _, e := range said {
		u.like.source(e.Content, m.Content, len(said) == 1)
	}
	return err
}

// located has the events of a memory: one that a turn saved was said by the messages that the turn took. Where the turn
// is still to come to the log, it has none.
func (u *unsaying) located(ctx context.Context, m dbsqlc.MemorySourceRow) (dbsqlc.MemorySourceRow, error) {
	if m.EndSeq != 0 {
		return m, nil
	}
	turns, known := u.turns[m.SourceSession]
	if !known {
		var err error
		if turns, err = u.Store.turns(ctx, u.tx, m.SourceSession); err != nil {
			return m, err
		}
		u.turns[m.SourceSession] = turns
	}
	if t, found := turnAt(turns, m.CreatedAt); found {
		m.StartSeq, m.EndSeq = t.first, t.asked
	}
	return m, nil
}

// beside takes what says the same and was drawn from the same events: a turn saves what it is asked to, and a flush may
// save it again in its own words.
func (u *unsaying) beside(ctx context.Context) error {
	for _, m := range slices.Clone(u.rows) {
		if m.Kind == memory.KindDigest {
			continue
		}
		ids := make([]int64, len(u.rows))
		for i := range u.rows {
			ids[i] = u.rows[i].ID
		}
		others, err := u.q.MemoriesBeside(ctx, u.tx, &dbsqlc.MemoriesBesideParams{SessionKey: m.SourceSession, Ids: ids})
		if err != nil {
			return err
		}
		for _, row := range others {
			if !sameStatement(row.Content, m.Content) {
				continue
			}
			o, err := u.located(ctx, dbsqlc.MemorySourceRow(row))
			if err != nil {
				return err
			}
			if o.StartSeq <= m.EndSeq && m.StartSeq <= o.EndSeq {
				if err := u.add(ctx, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sessions lists where the memory was said, and where it could be read and was told.
func (u *unsaying) sessions(ctx context.Context) ([]sessions.Key, error) {
	said := map[sessions.Key]bool{}
	p := &dbsqlc.SessionsTellingParams{
		Besides: []string{}, Teams: []string{}, SessionKeys: []string{}, Groups: []string{}, Users: []string{},
		Speakers: []string{}, Pieces: append([]string{}, u.like.pieces()...), MaxRows: maxTelling,
	}
	for _, m := range u.rows {
		if m.Kind != memory.KindDigest && !said[m.SourceSession] {
			said[m.SourceSession] = true
			p.Besides = append(p.Besides, string(m.SourceSession))
		}
		if m.SaidBy != "" {
			p.Speakers = append(p.Speakers, string(m.SaidBy))
		}
		switch m.Scope {
		case memory.ScopeTeam:
			p.Teams = append(p.Teams, m.ScopeID)
		case memory.ScopeGroup:
			p.Groups = append(p.Groups, m.ScopeID)
		case memory.ScopeSession:
			p.SessionKeys = append(p.SessionKeys, m.ScopeID)
		case memory.ScopeUser:
			p.Users = append(p.Users, m.ScopeID)
		}
	}
	keys := slices.Collect(maps.Keys(said))
	if len(keys) == 0 || len(p.Pieces) == 0 {
		return keys, nil
	}
	telling, err := u.q.SessionsTelling(ctx, u.tx, p)
	return append(keys, telling...), err
}

// session wipes what said the memory in one session, and what of the bot's own repeats it.
func (u *unsaying) session(ctx context.Context, key sessions.Key) error {
	row, err := u.q.SessionLock(ctx, u.tx, key)
	if errors.Is(err, pgx.ErrNoRows) && key != u.from.Lease.Key {
		return nil // it was deleted, and what it said with it
	}
	if err != nil {
		return found(err)
	}
	here := false
	theirs := func(e *dbsqlc.LogWalkRow) bool {
		return slices.ContainsFunc(u.rows, func(m dbsqlc.MemorySourceRow) bool {
			if m.SaidBy != "" && m.SaidBy != e.SenderID || u.from.Only != "" && u.from.Only != e.SenderID || m.Kind == memory.KindDigest {
				return false
			}
			if m.SourceSession == key && m.StartSeq <= e.Seq && e.Seq <= m.EndSeq {
				return m.SaidBy != "" && m.EndSeq-m.StartSeq < wideSource || u.like.in(e.Content)
			}
			return m.SaidBy != "" && u.like.tells(e.Content) // they said it once more
		})
	}
	for _, m := range u.rows {
		here = here || m.SourceSession == key && m.Kind != memory.KindDigest
	}
	repeats := u.like.far
	if here {
		repeats = u.like.in
	}
	events, err := u.places(ctx, u.tx, key, theirs, repeats)
	if err != nil {
		return err
	}
	return u.wipe(ctx, u.tx, &row, events, repeats, u.from, u.done)
}

// wipe wipes events of a locked session and leaves memory as it is. The turn that asks keeps its session.
func (s *Store) wipe(
	ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, events []wiped, repeats func(string) bool,
	from memory.Asking, done *memory.Forgotten,
) error {
	if seqs, messages := seqsOf(events); len(seqs) > 0 {
		e := &erasure{Store: s, tx: tx, row: row, seqs: seqs, cursor: row.CompactedSeq, repeats: repeats}
		if err := e.do(ctx); err != nil {
			return err
		}
		done.Sessions++
		done.Messages += messages
		done.Add(e.done)
		done.Embeddings += e.vectors
	}
	return s.keepAsking(ctx, tx, row, from, done)
}
