package erasure

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// logPage counts events.
const logPage = 200

// Messages that were answered together have one answer, which repeats any of them. The log is read before the session
// is locked, and its new part under the lock.
type logReading struct {
	key     sessions.Key
	theirs  func(*dbsqlc.LogWalkRow) bool
	repeats func(string) bool
	turns   answerTracker
	decided map[int64]bool // see [decidedFor]
	through int64
	found   []erasedEvent
}

func newReading(key sessions.Key, theirs func(*dbsqlc.LogWalkRow) bool, repeats func(string) bool) *logReading {
	return &logReading{key: key, theirs: theirs, repeats: repeats, turns: answerTracker{}}
}

func (s *Store) readLog(ctx context.Context, db dbsqlc.DBTX, r *logReading) error {
	return s.walkLog(ctx, db, r.key, r.through, func(e *dbsqlc.LogWalkRow) {
		r.through = e.Seq
		said := e.Role == sessions.RoleUser
		own := said && r.theirs(e)
		answers := r.turns.isErased(e, own || r.decided[e.ID])
		if (own || !said && answers ||
			!said && (r.repeats(e.Content) || r.repeats(e.Calls))) &&
			(e.Content != sessions.ErasedText || e.Calls != "") {
			r.found = append(r.found, erasedEvent{seq: e.Seq, message: e.Role != sessions.RoleTool && e.Content != ""})
		}
	})
}

// decidedFor are the messages that decided on calls which a person or a message asked for. They may be another person's and stay; their answers go.
func decidedFor(ctx context.Context, s *Store, db dbsqlc.DBTX, key sessions.Key, people []string, event int64) (map[int64]bool, error) {
	ids, err := s.db.Q.DecidedFor(ctx, db, &dbsqlc.DecidedForParams{SessionKey: key, People: append([]string{}, people...), Event: event})
	decided := make(map[int64]bool, len(ids))
	for _, id := range ids {
		decided[id] = true
	}
	return decided, err
}

// A log that became shorter belongs to a new session: the old one was deleted meanwhile.
func (s *Store) readRest(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, r *logReading) error {
	if row.LastSeq < r.through {
		return errStale
	}
	return s.readLog(ctx, tx, r)
}

// answerTracker selects, in order of the log, the person's messages and the events that answer them: those of a turn that took one of them.
type answerTracker struct {
	under bool // the turn took one of their messages
	asked bool // the turn took a message
	edge  turnEdge
}

func (a *answerTracker) isErased(e *dbsqlc.LogWalkRow, theirs bool) bool {
	said := e.Role == sessions.RoleUser
	if a.edge.beginsTurn(e.Turn, said) {
		a.under, a.asked = false, false
	}
	a.under, a.asked = a.under || theirs, a.asked || said
	if said {
		return theirs
	}
	return a.under
}

// turnEdge finds the first event of each turn, in order of the log. The number of its turn decides, since a turn may have no answer.
// Events of older releases have none: there a message behind an answer begins a turn.
type turnEdge struct {
	turn *int64
	said bool
}

func (t *turnEdge) beginsTurn(turn *int64, said bool) bool {
	before := *t
	*t = turnEdge{turn, said}
	if turn == nil && before.turn == nil {
		return said && !before.said
	}
	return turn == nil || before.turn == nil || *turn != *before.turn
}

// messagesUpTo counts what goes with a session up to the asking message, and lists the answers that stay: those to later messages. An
// answer that also answers earlier messages or repeats unsaid content goes.
func (s *Store) messagesUpTo(
	ctx context.Context, db dbsqlc.DBTX, key sessions.Key, asked int64, repeats func(string) bool,
) (gone dbsqlc.SessionMessagesRow, stay []int64, err error) {
	var later []int64
	if asked != 0 {
		if later, err = s.db.Q.MessagesAfter(ctx, db, &dbsqlc.MessagesAfterParams{SessionKey: key, Asked: asked}); err != nil {
			return gone, nil, err
		}
	}
	if len(later) > 0 {
		turns := answerTracker{}
		if err := s.walkLog(ctx, db, key, 0, func(e *dbsqlc.LogWalkRow) {
			said := e.Role == sessions.RoleUser
			if goes := turns.isErased(e, said && !slices.Contains(later, e.ID)); !said && turns.asked && !goes && !repeats(e.Content) && !repeats(e.Calls) {
				stay = append(stay, e.ID)
			}
		}); err != nil {
			return gone, nil, err
		}
	}
	gone, err = s.db.Q.SessionMessages(ctx, db, &dbsqlc.SessionMessagesParams{
		SessionKey: key, Asked: asked, Answers: append([]int64{}, stay...), Erased: sessions.ErasedText,
	})
	return gone, stay, err
}

// erasedEvent is an event whose text goes.
type erasedEvent struct {
	seq     int64 // place in the log; 0: none
	aside   int64 // id of an event without a place, else 0
	message bool  // counts as a message in the report: no result of a tool
}

func placesOf(events []erasedEvent) (seqs, aside []int64, messages int) {
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

func (s *Store) walkLog(ctx context.Context, db dbsqlc.DBTX, key sessions.Key, after int64, see func(*dbsqlc.LogWalkRow)) error {
	for {
		rows, err := s.db.Q.LogWalk(ctx, db, &dbsqlc.LogWalkParams{SessionKey: key, AfterSeq: after, MaxRows: logPage})
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
	term, err := s.db.Q.SessionKeep(ctx, tx, &dbsqlc.SessionKeepParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term})
	done.Lease.Term = term
	return err
}

// forgetFacts also restarts the work of sessions that may have read the memories, except asking.
func (s *Store) forgetFacts(ctx context.Context, tx pgx.Tx, ids []int64, asking sessions.Key, done *memory.Forgotten) error {
	if len(ids) == 0 {
		return nil
	}
	ids, err := s.withDerived(ctx, tx, ids)
	if err != nil {
		return err
	}
	// Readers come first: their pins are committed by then, and are found. A session that takes its lease later pins no
	// deleted row; see [sessions.Pinned].
	reading, err := s.leasedReaders(ctx, tx, ids, asking)
	if err == nil {
		err = s.db.LockSessions(ctx, tx, reading)
	}
	if err != nil {
		return err
	}
	if err := s.endTerms(ctx, tx, true, reading...); err != nil {
		return err
	}
	facts, vectors, err := s.deleteDerived(ctx, tx, ids)
	done.Memories += len(facts)
	done.Embeddings += vectors
	return err
}

// ForgetSession deletes the memories from a session, former values too, and leaves the log unchanged. It returns
// sessions.ErrNotFound for an unknown session.
func (s *Store) ForgetSession(ctx context.Context, key sessions.Key) (memory.Forgotten, error) {
	var done memory.Forgotten
	all := &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: []string{}}
	taught, err := s.db.Q.MemoriesDrawn(ctx, s.db.Pool, all)
	var readers []sessions.Key
	if err == nil {
		readers, err = s.readersOf(ctx, idsOf(taught))
	}
	if err == nil {
		err = s.db.WithSession(ctx, key, func(tx pgx.Tx, _ *dbsqlc.Session) error {
			done = memory.Forgotten{}
			taught, err := s.db.Q.MemoriesDrawn(ctx, tx, all)
			if err != nil {
				return err
			}
			done.Sessions = 1
			return s.forgetFacts(ctx, tx, idsOf(taught), "", &done)
		}, readers...)
	}
	if err == nil {
		err = s.awaitFrames(ctx)
	}
	if err != nil {
		return memory.Forgotten{}, fmt.Errorf("forgetting what a session taught: %w", err)
	}
	return done, nil
}
