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

// logPage is how many events of a log an erasure reads at a time.
const logPage = 2000

// places finds the events of a session that are to be wiped: the messages that are theirs, whatever was done and said to
// answer them, and what of the bot's own repeats what must be forgotten. Messages that were answered together have one
// answer, which repeats any of them.
func (s *Store) places(
	ctx context.Context, tx pgx.Tx, key sessions.Key, theirs func(*dbsqlc.LogWalkRow) bool, repeats func(string) bool,
) ([]int64, error) {
	var seqs []int64
	answer, last := false, sessions.RoleTool
	err := s.walk(ctx, tx, key, func(e *dbsqlc.LogWalkRow) {
		if e.Role == sessions.RoleUser {
			answer = answer && last == sessions.RoleUser // else a new turn begins
			if theirs(e) {
				answer, seqs = true, append(seqs, e.Seq)
			}
		} else if answer || repeats(e.Content) || repeats(e.Calls) {
			seqs = append(seqs, e.Seq)
		}
		last = e.Role
	})
	return seqs, err
}

// walk reads a session's log in the order of the view.
func (s *Store) walk(ctx context.Context, tx pgx.Tx, key sessions.Key, see func(*dbsqlc.LogWalkRow)) error {
	for after := int64(0); ; {
		rows, err := s.q.LogWalk(ctx, tx, &dbsqlc.LogWalkParams{SessionKey: key, AfterSeq: after, MaxRows: logPage})
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			see(&rows[i])
			after = rows[i].Seq
		}
	}
}

// ForgetMemory implements memory.Rights.
func (s *Store) ForgetMemory(ctx context.Context, id int64, from memory.Asking) (memory.Forgotten, error) {
	done := memory.Forgotten{Lease: from.Lease}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		chain, err := s.q.MemoryChain(ctx, tx, id)
		if err != nil {
			return err
		}
		var ids []int64
		said := map[sessions.Key][]dbsqlc.MemorySourceRow{}
		for _, c := range chain {
			if !c.IsOlder {
				continue // a later value is another fact to its people
			}
			m, err := s.q.MemorySource(ctx, tx, c.ID)
			if err != nil {
				return err
			}
			if ids = append(ids, c.ID); m.Kind == memory.KindDigest {
				continue // it tells what many said: that stays
			}
			said[m.SourceSession] = append(said[m.SourceSession], m)
		}
		if len(ids) == 0 {
			return sessions.ErrNotFound
		}
		for _, key := range slices.Sorted(maps.Keys(said)) { // in one order, so that two such never wait for each other
			if err := s.forgetSaid(ctx, tx, key, said[key], from, &done); err != nil {
				return err
			}
		}
		if err := s.forgetFacts(ctx, tx, ids, from.Lease.Key, &done); err != nil || done.Lease != from.Lease || from.Lease.Owner == "" {
			return err
		}
		row, err := s.q.SessionLock(ctx, tx, from.Lease.Key)
		if err != nil {
			return found(err)
		}
		return s.keepAsking(ctx, tx, &row, from, &done)
	})
	if err != nil {
		return memory.Forgotten{}, fmt.Errorf("forgetting memory %d: %w", id, refused(err))
	}
	return done, nil
}

// wideSource is how many events a memory may be drawn from for all of them to count as what said it.
const wideSource = 8

// forgetSaid wipes what said memories in a session. Of a memory that was drawn from a long range, only what has its words.
func (s *Store) forgetSaid(
	ctx context.Context, tx pgx.Tx, key sessions.Key, said []dbsqlc.MemorySourceRow, from memory.Asking, done *memory.Forgotten,
) error {
	row, err := s.q.SessionLock(ctx, tx, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // it was deleted, and what it said with it
	}
	if err != nil {
		return err
	}
	like := likeness{marks: map[string]bool{}}
	for i := range said {
		like.learn(said[i].Content)
		if said[i].EndSeq == 0 { // saved by its turn: by the last thing that was said before
			turn, err := s.q.TurnAt(ctx, tx, &dbsqlc.TurnAtParams{SessionKey: key, At: said[i].CreatedAt})
			if err != nil {
				return err
			}
			said[i].StartSeq, said[i].EndSeq = turn, turn
		}
	}
	seqs, err := s.places(ctx, tx, key, func(e *dbsqlc.LogWalkRow) bool {
		return slices.ContainsFunc(said, func(m dbsqlc.MemorySourceRow) bool {
			return m.StartSeq <= e.Seq && e.Seq <= m.EndSeq && (m.SaidBy == "" || m.SaidBy == e.SenderID) &&
				(m.EndSeq-m.StartSeq < wideSource || like.in(e.Content))
		})
	}, like.in)
	if err != nil || len(seqs) == 0 {
		return err
	}
	e := &erasure{Store: s, tx: tx, row: &row, seqs: seqs, cursor: row.CompactedSeq, keepFacts: true}
	if err := e.do(ctx); err != nil {
		return err
	}
	done.Sessions++
	done.Add(e.done)
	done.Embeddings += e.vectors
	return s.keepAsking(ctx, tx, &row, from, done)
}

// keepAsking gives the session of the turn that asks back to it, if that is the row's.
func (s *Store) keepAsking(
	ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, from memory.Asking, done *memory.Forgotten,
) error {
	l := from.Lease
	if l.Owner == "" || row.SessionKey != l.Key {
		return nil
	}
	if orZero(row.LeaseOwner) != l.Owner || row.LeaseTerm != l.Term {
		return sessions.ErrLeaseLost
	}
	term, err := s.q.SessionKeep(ctx, tx, &dbsqlc.SessionKeepParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term})
	done.Lease.Term = term
	return err
}

// forgetFacts deletes memories, what was made from them, and the work of whoever may have read them, asking aside.
func (s *Store) forgetFacts(ctx context.Context, tx pgx.Tx, ids []int64, asking sessions.Key, done *memory.Forgotten) error {
	if len(ids) == 0 {
		return nil
	}
	scopes, err := s.q.MemoryScopes(ctx, tx, ids)
	if err != nil {
		return err
	}
	p := &dbsqlc.SessionsFreeParams{Asking: string(asking), Teams: []string{}, Groups: []string{}, SessionKeys: []string{}}
	for _, sc := range scopes {
		switch sc.Scope {
		case memory.ScopeTeam:
			p.Teams = append(p.Teams, sc.ScopeID)
		case memory.ScopeGroup:
			p.Groups = append(p.Groups, sc.ScopeID)
		case memory.ScopeSession:
			p.SessionKeys = append(p.SessionKeys, sc.ScopeID)
		case memory.ScopeUser: // read where the person speaks: these sessions are erased themselves
		}
	}
	rows, err := s.q.MemoriesForget(ctx, tx, ids)
	if err != nil {
		return err
	}
	facts := make([]fact, len(rows))
	for i, r := range rows {
		facts[i] = fact{r.ID, r.Content}
	}
	vectors, err := s.unmake(ctx, tx, facts)
	if err != nil {
		return err
	}
	done.Memories += len(facts)
	done.Embeddings += vectors
	return s.q.SessionsFree(ctx, tx, p)
}

// ForgetSession deletes what memory has from a session, former values too, and leaves the log as it is:
// sessions.ErrNotFound where there is no such session.
func (s *Store) ForgetSession(ctx context.Context, key sessions.Key) (memory.Forgotten, error) {
	var done memory.Forgotten
	err := s.locked(ctx, key, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		drawn, err := s.q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key})
		if err != nil {
			return err
		}
		ids := make([]int64, len(drawn))
		for i, m := range drawn {
			ids[i] = m.ID
		}
		done.Sessions = 1
		return s.forgetFacts(ctx, tx, ids, "", &done)
	})
	if err != nil {
		return memory.Forgotten{}, fmt.Errorf("forgetting what session %s taught: %w", key, err)
	}
	return done, nil
}
