package conversation

import (
	"context"
	"fmt"
	"time"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Restarts keeps the accounts of processes.
type Restarts struct{ db *pg.DB }

// NewRestarts returns the accounts of a database.
func NewRestarts(db *pg.DB) *Restarts { return &Restarts{db} }

// OpenRestart implements sessions.Reporter.
func (s *Restarts) OpenRestart(ctx context.Context, owner sessions.ReplicaID) error {
	if err := s.db.Q.RestartOpen(ctx, s.db.Pool, string(owner)); err != nil {
		return fmt.Errorf("beginning the account of replica %s: %w", owner, err)
	}
	return nil
}

// KeepRestart implements sessions.Reporter.
func (s *Restarts) KeepRestart(ctx context.Context, owner sessions.ReplicaID, ending sessions.Ending, f sessions.RestartFigures) error {
	err := s.db.Q.RestartKeep(ctx, s.db.Pool, &dbsqlc.RestartKeepParams{
		Replica: string(owner), Ending: string(ending), Answered: f.Answered, Drained: f.Drained, Flushed: f.Flushed, Debt: f.Debt,
		Resumed: f.Resumed, Redelivered: f.Redelivered, Doubled: f.Doubled, Lost: f.Lost,
	})
	if err != nil {
		return fmt.Errorf("writing the account of replica %s: %w", owner, err)
	}
	return nil
}

// EndedRestarts implements sessions.Reporter.
func (s *Restarts) EndedRestarts(ctx context.Context) ([]sessions.Restart, error) {
	replicas, err := s.db.Q.ReplicasBeats(ctx, s.db.Pool, s.db.TTL.Seconds())
	if err != nil {
		return nil, fmt.Errorf("reading the heartbeats of replicas: %w", err)
	}
	p := &dbsqlc.RestartsEndedParams{Ids: []string{}, Beats: []time.Time{}, Alive: []string{}, TtlSeconds: s.db.TTL.Seconds()}
	for _, r := range replicas {
		p.Ids, p.Beats = append(p.Ids, string(r.ID)), append(p.Beats, r.HeartbeatAt)
		if r.Alive {
			p.Alive = append(p.Alive, string(r.ID))
		}
	}
	rows, err := s.db.Q.RestartsEnded(ctx, s.db.Pool, p)
	if err != nil {
		return nil, fmt.Errorf("looking for processes that ended: %w", err)
	}
	out := make([]sessions.Restart, 0, len(rows))
	for _, r := range rows {
		out = append(out, convert.Restart(dbsqlc.Restart(r)))
	}
	return out, nil
}

// Gone implements sessions.Reporter.
func (s *Restarts) Gone(ctx context.Context, stored []sessions.Stored) (int64, error) {
	p := &dbsqlc.EventsGoneParams{Keys: []string{}, Ids: []int64{}, Ages: []float64{}}
	for _, m := range stored {
		p.Keys, p.Ids, p.Ages = append(p.Keys, string(m.Key)), append(p.Ids, m.EventID), append(p.Ages, m.Age.Seconds())
	}
	n, err := s.db.Q.EventsGone(ctx, s.db.Pool, p)
	if err != nil {
		return 0, fmt.Errorf("looking for %d messages in the log: %w", len(stored), err)
	}
	return n, nil
}
