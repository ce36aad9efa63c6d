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

// logPage is how many events of a log an erasure reads at a time.
const logPage = 200

// reading finds the events of a session that are to be wiped: the messages that are theirs, whatever was done and said to
// answer them, and what of the bot's own repeats what must be forgotten. Messages that were answered together have one
// answer, which repeats any of them. The log is read before the session is held, and what came since under the lock.
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

// read reads on in the log.
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

// readRest reads what came to the log of a session that is locked now. A log that is shorter than before is another one:
// the session was deleted meanwhile.
func (s *Store) readRest(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, r *reading) error {
	if row.LastSeq < r.through {
		return errStale
	}
	return s.read(ctx, tx, r)
}

// answers tells in a walk through a log which events are messages of theirs, or were done and said to answer them.
type answers struct {
	under bool // a message of theirs is among what the turn took
	last  sessions.Role
}

func newAnswers() answers { return answers{last: sessions.RoleTool} }

func (a *answers) next(e *dbsqlc.LogWalkRow, theirs bool) bool {
	wipe := a.under
	if e.Role == sessions.RoleUser {
		a.under = a.under && a.last == sessions.RoleUser || theirs // else a new turn begins
		wipe = theirs
	}
	a.last = e.Role
	return wipe
}

// answersAfter lists the answers in a session to messages that were sent after the one that asks for an erasure and answered
// before it. An answer to earlier messages, too, is none of them, nor one that repeats what must be forgotten.
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
	turns.under = true // what stands before the first message answers none
	err = s.walk(ctx, db, key, 0, func(e *dbsqlc.LogWalkRow) {
		said := e.Role == sessions.RoleUser
		if goes := turns.next(e, said && !slices.Contains(later, e.ID)); !said && !goes && !repeats(e.Content) && !repeats(e.Calls) {
			answered = append(answered, e.ID)
		}
	})
	return answered, err
}

// wiped is an event that is to be wiped, and whether people saw it as a message.
type wiped struct {
	seq     int64
	aside   int64 // the event's id, where it has no place
	message bool
}

// placesOf are the places of events, the ids of those without one, and how many of both were messages.
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

// walk reads a session's log behind a place, in the order of the view.
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
	}
}

// keepAsking gives the session of the turn that asks back to it, if that is the row's.
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

// forgetFacts deletes memories, what was made from them, and the work of whoever may have read them, asking aside.
func (s *Store) forgetFacts(ctx context.Context, tx pgx.Tx, ids []int64, asking sessions.Key, done *memory.Forgotten) error {
	if len(ids) == 0 {
		return nil
	}
	ids, err := s.retold(ctx, tx, ids)
	if err != nil {
		return err
	}
	scopes, err := s.Q.MemoryScopes(ctx, tx, ids)
	if err != nil {
		return err
	}
	p := &dbsqlc.SessionsFreeParams{MostCut: sessions.MaxCutTurns, TtlSeconds: s.TTL.Seconds(), Asking: string(asking), Teams: []string{}, Groups: []string{}, SessionKeys: []string{}}
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
	// The readers first: what they have pinned is committed by then, and is found. Sessions that take their lease after that
	// pin none of the deleted rows; see [sessions.Pinned].
	spared, err := s.Q.SessionsFree(ctx, tx, p)
	if err != nil {
		return err
	}
	if len(spared) > 0 {
		return &pg.OpenTurn{Key: spared[0].SessionKey, Term: spared[0].LeaseTerm}
	}
	facts, vectors, err := s.unmake(ctx, tx, ids)
	done.Memories += len(facts)
	done.Embeddings += vectors
	return err
}

// ForgetSession deletes what memory has from a session, former values too, and leaves the log as it is:
// sessions.ErrNotFound where there is no such session.
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
		return memory.Forgotten{}, fmt.Errorf("forgetting what session %s taught: %w", key, err)
	}
	return done, nil
}
