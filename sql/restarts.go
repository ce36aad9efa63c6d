package sql

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// OpenRestart implements sessions.Reporter.
func (s *conversationStore) OpenRestart(ctx context.Context, owner sessions.ReplicaID) error {
	if err := s.q.RestartOpen(ctx, s.pool, string(owner)); err != nil {
		return fmt.Errorf("beginning the account of replica %s: %w", owner, err)
	}
	return nil
}

// KeepRestart implements sessions.Reporter.
func (s *conversationStore) KeepRestart(ctx context.Context, owner sessions.ReplicaID, ending sessions.Ending, f sessions.RestartFigures) error {
	err := s.q.RestartKeep(ctx, s.pool, &dbsqlc.RestartKeepParams{
		Replica: string(owner), Ending: string(ending), Answered: f.Answered, Drained: f.Drained, Flushed: f.Flushed, Debt: f.Debt,
		Resumed: f.Resumed, Redelivered: f.Redelivered, Doubled: f.Doubled, Lost: f.Lost,
	})
	if err != nil {
		return fmt.Errorf("writing the account of replica %s: %w", owner, err)
	}
	return nil
}

// EndedRestarts implements sessions.Reporter.
func (s *conversationStore) EndedRestarts(ctx context.Context) ([]sessions.Restart, error) {
	rows, err := s.q.RestartsEnded(ctx, s.pool, s.ttl.Seconds())
	if err != nil {
		return nil, fmt.Errorf("looking for processes that ended: %w", err)
	}
	out := make([]sessions.Restart, 0, len(rows))
	for _, r := range rows {
		out = append(out, restart(dbsqlc.Restart(r)))
	}
	return out, nil
}

// Restarts lists the accounts of processes, the newest first, at most limit.
func (s *conversationStore) Restarts(ctx context.Context, limit int) ([]sessions.Restart, error) {
	rows, err := s.q.RestartsList(ctx, s.pool, count(limit))
	if err != nil {
		return nil, fmt.Errorf("listing restarts: %w", err)
	}
	return restarts(rows), nil
}

// Gone implements sessions.Reporter.
func (s *conversationStore) Gone(ctx context.Context, stored []sessions.Stored) (int64, error) {
	p := &dbsqlc.EventsGoneParams{Keys: []string{}, Ids: []int64{}, Ages: []float64{}}
	for _, m := range stored {
		p.Keys, p.Ids, p.Ages = append(p.Keys, string(m.Key)), append(p.Ids, m.EventID), append(p.Ages, m.Age.Seconds())
	}
	n, err := s.q.EventsGone(ctx, s.pool, p)
	if err != nil {
		return 0, fmt.Errorf("looking for %d messages in the log: %w", len(stored), err)
	}
	return n, nil
}
