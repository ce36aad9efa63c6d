package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Leases are the rights of replicas to write sessions, with their heartbeats.
type Leases struct{ db *pg.DB }

// NewLeases returns the leases of a database.
func NewLeases(db *pg.DB) *Leases { return &Leases{db} }

// Beat implements sessions.Leases.
func (s *Leases) Beat(ctx context.Context, owner sessions.ReplicaID) (time.Time, error) {
	sent := time.Now()
	p := s.db.Pool.Heartbeats.Pipeline()
	s.db.Q.CommitUnsynced(ctx, p, []string{"off"})
	s.db.Q.ReplicaLock(ctx, p, []sessions.ReplicaID{owner})
	beat := s.db.Q.ReplicaBeat(ctx, p, []string{string(owner)})
	err := p.Send(ctx)
	at, none := pg.One(beat.QueryRow)
	if err = cmp.Or(err, none); err != nil {
		return time.Time{}, fmt.Errorf("writing the heartbeat of replica %s: %w", owner, err)
	}
	s.db.Clock.Set(at, sent)
	return at, nil
}

// wake notifies replicas after a commit, so that its failure is no failure of the work. A replica that it does not reach finds out by
// itself: by the sweep each second, on a cluster each 5, and of the leader twice a second.
func wake(ctx context.Context, q *dbsqlc.Queries, on dbsqlc.DBTX, payload string) {
	if err := q.Notify(ctx, on, payload); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Notification not sent: the sweep makes up for it")
	}
}

// toAll is a notification to every replica about every session.
const toAll = "|"

// Acquire implements sessions.Leases.
func (s *Leases) Acquire(
	ctx context.Context, key sessions.Key, owner sessions.ReplicaID,
) (sessions.Lease, error) {
	p := s.db.Pool.Pipeline()
	s.db.Q.LeaseTake(ctx, p, []*dbsqlc.LeaseTakeParams{{SessionKey: key, Owner: string(owner), TtlSeconds: s.db.TTL.Seconds()}})
	read := s.db.Q.LeaseRead(ctx, p, []sessions.Key{key})
	err := p.Send(ctx)
	row, none := pg.One(read.QueryRow)
	if err = cmp.Or(err, none); err == nil && row.Owner != string(owner) {
		err = sessions.ErrLeaseHeld
	}
	if err != nil {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", pg.AsNotFound(err))
	}
	return sessions.Lease{Key: key, Owner: owner, Term: row.Term}, nil
}

// Release implements sessions.Leases. It notifies every other replica when messages wait.
func (s *Leases) Release(ctx context.Context, l sessions.Lease) error {
	p := s.db.Pool.Pipeline()
	freed := s.db.Q.LeaseFree(ctx, p, []*dbsqlc.LeaseFreeParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term}})
	left := s.db.Q.LeaseWaits(ctx, p, []sessions.Key{l.Key})
	err := p.Send(ctx)
	if err == nil {
		_, err = pg.One(freed.QueryRow)
		err = pg.AsLost(err)
	}
	waits, none := pg.One(left.QueryRow)
	if err = cmp.Or(err, none); err != nil {
		return fmt.Errorf("releasing a lease: %w", err)
	}
	if waits {
		wake(ctx, s.db.Q, s.db.Pool, toAll+string(l.Key))
	}
	return nil
}

// Rest implements sessions.Leases. A session whose row is locked is in use. Each lease has a transaction of its own, so that none waits
// for another session's row; a rest that a crash of the server loses comes again.
func (s *Leases) Rest(ctx context.Context, owner sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	gone, err := restLeases(ctx, s.db, owner, keys, rest, unflushed)
	if err != nil {
		err = fmt.Errorf("releasing the idle leases of replica %s: %w", owner, err)
	}
	return gone, err // those that rested before an error are free
}

// restLeases releases each idle session by itself, and waits neither for a lock nor for the disk. A session that is locked is no
// longer idle, and a release that a crash loses is repeated.
func restLeases(ctx context.Context, db *pg.DB, owner sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	rows, err := db.Q.LeasesIdle(ctx, db.Pool, &dbsqlc.LeasesIdleParams{
		SessionKeys: textsOf(keys), Owner: string(owner), RestSeconds: rest.Seconds(), UnflushedSeconds: unflushed.Seconds(),
	})
	if err != nil {
		return nil, err
	}
	held := map[sessions.Key]bool{}
	for _, row := range rows {
		held[row.SessionKey] = true
	}
	for _, row := range rows {
		if !row.Rests {
			continue
		}
		p := db.Pool.Pipeline()
		db.Q.CommitUnsynced(ctx, p, []string{"off"})
		seized := db.Q.LeaseSeize(ctx, p, []sessions.Key{row.SessionKey})
		freed := db.Q.LeaseRest(ctx, p, []*dbsqlc.LeaseRestParams{{
			SessionKey: row.SessionKey, Owner: string(owner), Term: row.Term, RestSeconds: rest.Seconds(),
		}})
		err = p.Send(ctx)
		if pg.IsCode(pg.Done(seized.Exec), pg.LockNotAvailable) {
			err = nil
			continue
		}
		var some []sessions.Key
		if err == nil {
			some, err = pg.Found(freed.QueryRow)
		}
		if err != nil {
			break
		}
		held[row.SessionKey] = len(some) == 0
	}
	return slices.DeleteFunc(slices.Clone(keys), func(k sessions.Key) bool { return held[k] }), err
}

// Resign implements sessions.Leases. It notifies every other replica. A replica that dies between the statements has a heartbeat for the
// rest of its time to live, and no lease.
func (s *Leases) Resign(ctx context.Context, owner sessions.ReplicaID) (int, error) {
	n, err := s.db.Q.LeasesFree(ctx, s.db.Pool, string(owner))
	if err == nil {
		err = s.db.Q.ReplicaDelete(ctx, s.db.Pool, string(owner))
	}
	if err != nil {
		return 0, fmt.Errorf("giving up the leases of replica %s: %w", owner, err)
	}
	if n > 0 {
		wake(ctx, s.db.Q, s.db.Pool, toAll)
	}
	return int(n), nil
}

// A nil slice would be NULL.
func textsOf[T ~string](all []T) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = pg.Clean(string(one))
	}
	return texts
}
