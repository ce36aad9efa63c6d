package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// awaitSend returns a [pg.OpenWork] while a reply is being sent: its text was read before the erasure. The caller's
// lock lets no try begin.
func (s *Store) awaitSend(ctx context.Context, tx pgx.Tx, key sessions.Key) error {
	return s.awaitWork(ctx, tx, &pg.OpenWork{Key: key, Reply: true})
}

func (s *Store) awaitWork(ctx context.Context, tx pgx.Tx, o *pg.OpenWork) error {
	open, err := s.db.IsWorkOpen(ctx, tx, o)
	if err != nil || !open {
		return err
	}
	return o
}

// awaitFrames returns when no call of an ended term can show something any more: it may have begun right before the erasure ended
// the term. No other begins later, and each is over after [sessions.FrameTime]: frames of other sessions make it no longer. A storage
// that fails, after the erasure is done, is a reason to wait that long, and none to report the erasure as failed.
func (s *Store) awaitFrames(ctx context.Context) error {
	one, stop := context.WithTimeout(ctx, sessions.FrameTime)
	defer stop()
	err := periodic.Poll(one, framePoll, func() (bool, error) {
		open, err := s.db.Q.FramesOpen(one, s.db.Pool)
		return !open, err
	})
	if err == nil {
		return nil
	}
	<-one.Done()
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for cards that may still show what was erased: %w", err)
	}
	return nil
}

const framePoll = 50 * time.Millisecond

// awaitOpenWork returns a [pg.OpenWork] for running work that an erasure must not end, or a reply being sent. The turn that
// asks for the erasure goes on anyway.
func (s *Store) awaitOpenWork(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, asking sessions.Lease) error {
	if err := s.awaitSend(ctx, tx, row.SessionKey); err != nil {
		return err
	}
	owner := pg.OrZero(row.LeaseOwner)
	if max(row.CutTurns, row.CutUpkeep) < sessions.MaxCuts || owner == "" {
		return nil
	}
	return s.awaitWork(ctx, tx, &pg.OpenWork{
		Key: row.SessionKey, Term: row.LeaseTerm,
		Asks: row.SessionKey == asking.Key && owner == asking.Owner && row.LeaseTerm == asking.Term,
	})
}

// restoreTime bounds the restoration of a turn's marks.
const restoreTime = 5 * time.Second

// While the asking turn waits, other erasures need not spare it: two turns that ask would wait for each other.
func (s *Store) releaseWhileWaiting(ctx context.Context, asking sessions.Lease) context.Context {
	if asking.Owner == "" {
		return ctx
	}
	return pg.AroundWaits(ctx, func(wait func() error) error {
		ids, err := s.db.Q.AttemptRelease(ctx, s.db.Pool, &dbsqlc.AttemptReleaseParams{SessionKey: asking.Key, Term: asking.Term})
		if err != nil {
			return err
		}
		ended := wait()
		short, stop := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
		defer stop()
		return errors.Join(ended, s.db.Q.AttemptRestore(short, s.db.Pool, &dbsqlc.AttemptRestoreParams{
			SessionKey: asking.Key, Ids: append([]int64{}, ids...), Owner: string(asking.Owner), Term: asking.Term,
		}))
	})
}

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
