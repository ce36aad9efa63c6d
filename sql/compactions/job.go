package compactions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
	"ebb/sql/spend"
)

// Jobs keeps running compactions, so that a crash does not lose their cost.
type Jobs struct{ db *pg.DB }

// NewJobs returns the jobs of a database.
func NewJobs(db *pg.DB) *Jobs { return &Jobs{db} }

// OpenJob implements sessions.Jobs.
func (s *Jobs) OpenJob(ctx context.Context, l sessions.Lease, j sessions.Job) (sessions.Source, error) {
	var src sessions.Source
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
		if err := checkRange(row, j.Gen, j.From, j.Through); err != nil {
			return err
		}
		if src, err = s.readSource(ctx, tx, l.Key, j); err != nil {
			return err
		}
		p := &dbsqlc.JobOpenParams{
			SessionKey: l.Key, Gen: j.Gen, FromSeq: j.From, ThroughSeq: j.Through, SourceHash: src.Hash, Version: pg.Clean(j.Version),
			Attempts: 1,
		}
		old, err := s.db.Q.JobFind(ctx, tx, l.Key)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err == nil && old.Gen == p.Gen && old.FromSeq == p.FromSeq && old.ThroughSeq == p.ThroughSeq {
			if p.Attempts = old.Attempts + 1; old.Version == p.Version && old.SourceHash == p.SourceHash {
				p.Staged, src.Staged = old.Staged, old.Staged
			}
		}
		return s.db.Q.JobOpen(ctx, tx, p)
	})
	if err != nil {
		return sessions.Source{}, fmt.Errorf("opening a compaction of events %d to %d: %w", j.From+1, j.Through, pg.AsRefused(err))
	}
	return src, nil
}

// readSource reads a job's events as they were said. Their hash covers the log's own bodies, independent of later changes
// to others.
func (s *Jobs) readSource(ctx context.Context, tx pgx.Tx, key sessions.Key, j sessions.Job) (sessions.Source, error) {
	var src sessions.Source
	rows, err := s.db.Q.EventsSource(ctx, tx, &dbsqlc.EventsSourceParams{SessionKey: key, AfterSeq: j.From, ThroughSeq: j.Through})
	if err != nil {
		return src, err
	}
	src.Events = make([]sessions.Event, 0, len(rows))
	for i := range rows {
		e, err := convert.WholeEvent(&rows[i].Event)
		if err != nil {
			return src, err
		}
		src.Events = append(src.Events, e)
	}
	src.Hash = sessions.HashEvents(src.Events)
	for i, r := range rows {
		if r.Event.BlobID == nil {
			continue
		}
		e, blob := &src.Events[i], *r.Event.BlobID
		switch {
		case r.Body != nil && sessions.BlobOf(*r.Body) == blob:
			e.Content = *r.Body
		case sessions.BlobOf(e.Content) != blob: // the log has no such body either
			e.Content, e.Blob = sessions.Unavailable(blob), blob
		}
	}
	return src, nil
}

// StageJob implements sessions.Jobs.
func (s *Jobs) StageJob(ctx context.Context, l sessions.Lease, j sessions.Job, staged []byte, paid sessions.Spending) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		n, err := s.db.Q.JobStage(ctx, tx, &dbsqlc.JobStageParams{
			SessionKey: l.Key, Gen: j.Gen, FromSeq: j.From, ThroughSeq: j.Through, Version: pg.Clean(j.Version), Staged: staged,
		})
		if err := pg.Require(n, err, sessions.ErrConflict); err != nil {
			return err
		}
		return spend.Add(ctx, tx, s.db, l.Key, paid)
	})
	if err != nil {
		return fmt.Errorf("staging a compaction of events %d to %d: %w", j.From+1, j.Through, pg.AsRefused(err))
	}
	return nil
}

// MarkUpkeep implements sessions.Jobs.
func (s *Jobs) MarkUpkeep(ctx context.Context, l sessions.Lease, limit time.Duration) error {
	n, err := s.db.Q.UpkeepMark(ctx, s.db.Pool, &dbsqlc.UpkeepMarkParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, LimitSeconds: limit.Seconds(),
	})
	if err := pg.Require(n, err, sessions.ErrLeaseLost); err != nil {
		return fmt.Errorf("marking upkeep: %w", err)
	}
	return nil
}

// Job implements sessions.Jobs.
func (s *Jobs) Job(ctx context.Context, key sessions.Key) (sessions.Job, error) {
	row, err := s.db.Q.JobFind(ctx, s.db.Pool, key)
	if err != nil {
		return sessions.Job{}, fmt.Errorf("reading the compaction under way: %w", pg.AsNotFound(err))
	}
	return sessions.Job{
		Gen: row.Gen, From: row.FromSeq, Through: row.ThroughSeq, Version: row.Version, Attempts: row.Attempts,
		Staged: row.Staged != nil,
	}, nil
}
