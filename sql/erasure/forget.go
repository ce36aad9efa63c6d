package erasure

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// logPage is the page size of an erasure's log reads, in events.
const logPage = 200

// reading finds the events of a session to wipe: the person's messages, everything that answers them, and the bot's
// repeats. Messages that were answered together have one answer, which repeats any of them. The log is read before the
// session is locked, and its new part under the lock.
type reading struct {
	key     sessions.Key
	theirs  func(*dbsqlc.LogWalkRow) bool
	repeats func(string) bool
	turns   answers
	through int64 // place up to which the log was read
	found   []wiped
}

func newReading(key sessions.Key, theirs func(*dbsqlc.LogWalkRow) bool, repeats func(string) bool) *reading {
	return &reading{key: key, theirs: theirs, repeats: repeats, turns: newAnswers()}
}

// read reads the next part of the log.
func (s *Store) read(ctx context.Context, db dbsqlc.DBTX, r *reading) error {
	return s.walk(ctx, db, r.key, r.through, func(e *dbsqlc.LogWalkRow) {
		r.through = e.Seq
		if (r.turns.next(e, e.Role == sessions.RoleUser && r.theirs(e)) ||
			e.Role != sessions.RoleUser && (r.repeats(e.Content) || r.repeats(e.Calls))) &&
			(e.Content != sessions.ErasedText || e.Calls != "") {
			r.found = append(r.found, wiped{seq: e.Seq, message: e.Role != sessions.RoleTool && e.Content != ""})
		}
	})
}

// readRest reads the new part of a locked session's log. A log that became shorter belongs to a new session: the old
// one was deleted meanwhile.
func (s *Store) readRest(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, r *reading) error {
	if row.LastSeq < r.through {
		return errStale
	}
	return s.read(ctx, tx, r)
}

// answers selects, in order of the log, the person's messages and the events that answer them.
type answers struct {
	under bool // the turn took one of their messages
	last  sessions.Role
}

func newAnswers() answers { return answers{last: sessions.RoleTool} }

func (a *answers) next(e *dbsqlc.LogWalkRow, theirs bool) bool {
	wipe := a.under
	if e.Role == sessions.RoleUser {
		a.under = a.under && a.last == sessions.RoleUser || theirs // another role begins a new turn
		wipe = theirs
	}
	a.last = e.Role
	return wipe
}

// answersAfter lists a session's answers to messages that came after the asking one. An answer to earlier messages too
// does not count, nor one that repeats unsaid content.
func (s *Store) answersAfter(
	ctx context.Context, db dbsqlc.DBTX, key sessions.Key, asked int64, repeats func(string) bool,
) (answered []int64, err error) {
	if asked == 0 {
		return nil, nil
	}
	later, err := s.Q.MessagesAfter(ctx, db, &dbsqlc.MessagesAfterParams{SessionKey: key, Asked: asked})
	if err != nil || len(later) == 0 {
		return nil, err
	}
	turns := newAnswers()
	turns.under = true // events before the first message answer none of them
	err = s.walk(ctx, db, key, 0, func(e *dbsqlc.LogWalkRow) {
		said := e.Role == sessions.RoleUser
		if goes := turns.next(e, said && !slices.Contains(later, e.ID)); !said && !goes && !repeats(e.Content) && !repeats(e.Calls) {
			answered = append(answered, e.ID)
		}
	})
	return answered, err
}

// wiped is an event to wipe, and whether people saw it as a message.
type wiped struct {
	seq     int64
	aside   int64 // the event's id, when it has no place
	message bool
}

// placesOf are the places of events, the ids of those without one, and the number of messages in both.
func placesOf(events []wiped) (seqs, aside []int64, messages int) {
	for _, e := range events {
		if e.aside != 0 {
			aside = append(aside, e.aside)
		} else {
			seqs = append(seqs, e.seq)
		}
		if e.message {
			messages++
		}
	}
	return seqs, aside, messages
}

// walk reads a session's log after a place, in the order of the view.
func (s *Store) walk(ctx context.Context, db dbsqlc.DBTX, key sessions.Key, after int64, see func(*dbsqlc.LogWalkRow)) error {
	for {
		rows, err := s.Q.LogWalk(ctx, db, &dbsqlc.LogWalkParams{SessionKey: key, AfterSeq: after, MaxRows: logPage})
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			see(&rows[i])
			after = rows[i].Seq
		}
		if len(rows) < logPage {
			return nil
		}
	}
}

// keepAsking returns the session to the asking turn, when the row is that turn's.
func (s *Store) keepAsking(
	ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, from memory.Asking, done *memory.Forgotten,
) error {
	l := from.Lease
	if l.Owner == "" || row.SessionKey != l.Key {
		return nil
	}
	if pg.OrZero(row.LeaseOwner) != l.Owner || row.LeaseTerm != l.Term {
		return sessions.ErrLeaseLost
	}
	term, err := s.Q.SessionKeep(ctx, tx, &dbsqlc.SessionKeepParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term})
	done.Lease.Term = term
	return err
}

// forgetFacts deletes memories and everything derived from them, and restarts the work of sessions that may have read
// them, except asking.
func (s *Store) forgetFacts(ctx context.Context, tx pgx.Tx, ids []int64, asking sessions.Key, done *memory.Forgotten) error {
	if len(ids) == 0 {
		return nil
	}
	ids, err := s.withDerived(ctx, tx, ids)
	if err != nil {
		return err
	}
	scopes, err := s.Q.MemoryScopes(ctx, tx, ids)
	if err != nil {
		return err
	}
	p := &dbsqlc.SessionsReadScopeParams{Asking: string(asking), Teams: []string{}, Groups: []string{}, SessionKeys: []string{}}
	users := identity.ByRobot{}
	for _, sc := range scopes {
		switch sc.Scope {
		case memory.ScopeTeam:
			p.Teams = append(p.Teams, sc.ScopeID)
		case memory.ScopeGroup:
			p.Groups = append(p.Groups, sc.ScopeID)
		case memory.ScopeSession:
			p.SessionKeys = append(p.SessionKeys, sc.ScopeID)
		case memory.ScopeUser:
			users.Add(sc.SourceSession, sessions.UserID(sc.ScopeID))
			if sc.SourceGroup != "" {
				p.Groups = append(p.Groups, sc.SourceGroup)
			}
		}
	}
	if p.Users, err = s.identities.AllIDs(ctx, tx, users); err != nil {
		return err
	}
	// Readers come first: their pins are committed by then, and are found. A session that takes its lease later pins no
	// deleted row; see [sessions.Pinned].
	reading, err := s.Q.SessionsReadScope(ctx, tx, p)
	if err != nil {
		return err
	}
	spared, err := s.Q.SessionsFree(ctx, tx, &dbsqlc.SessionsFreeParams{
		SessionKeys: asStrings(reading), MostCut: sessions.MaxCuts, TtlSeconds: s.TTL.Seconds(),
	})
	if err != nil {
		return err
	}
	if len(spared) > 0 {
		return &pg.OpenWork{Key: spared[0].SessionKey, Term: spared[0].LeaseTerm}
	}
	facts, vectors, err := s.unmake(ctx, tx, ids)
	done.Memories += len(facts)
	done.Embeddings += vectors
	return err
}

// ForgetSession deletes the memories from a session, former values too, and leaves the log unchanged:
// sessions.ErrNotFound for an unknown session.
func (s *Store) ForgetSession(ctx context.Context, key sessions.Key) (memory.Forgotten, error) {
	var done memory.Forgotten
	err := s.WithSession(ctx, key, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		done = memory.Forgotten{}
		drawn, err := s.Q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: []string{}})
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
		return memory.Forgotten{}, fmt.Errorf("forgetting what a session taught: %w", err)
	}
	return done, nil
}
