package sql

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// States of an outbox row.
const (
	sending = "sending"
	waiting = "waiting"
	sent    = "sent"
	failed  = "failed"
)

// Unsent implements sessions.Outbox. Rows that are due, which have no NextAt, count as being in the hand of the
// lease's owner from then on.
func (s *Store) Unsent(ctx context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	rows, err := s.q.OutboxUnsent(ctx, s.pool, &dbsqlc.OutboxUnsentParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, HandSeconds: handTime.Seconds(),
	})
	if err == nil && len(rows) == 0 {
		err = sessions.ErrLeaseLost
	}
	if err != nil {
		return nil, fmt.Errorf("listing unsent replies of session %s: %w", l.Key, err)
	}
	var unsent []sessions.Outgoing
	for _, r := range rows {
		if r.ID == 0 {
			continue
		}
		target, err := toTarget(r.Target)
		if err != nil {
			return nil, fmt.Errorf("reading the target of reply %d of session %s: %w", r.ID, l.Key, err)
		}
		o := sessions.Outgoing{
			ID: r.ID, Key: l.Key, Attempts: r.Attempts, Part: r.Part, Resumed: r.Resumed, Created: r.CreatedAt,
			Reply: sessions.Reply{Target: target, Text: r.Body, Nonce: r.Nonce},
		}
		if r.State == waiting {
			o.NextAt = r.NextAt
		}
		unsent = append(unsent, o)
	}
	return unsent, nil
}

// Settle implements sessions.Outbox. It is not fenced: what was sent was sent, whoever holds the session by now.
func (s *Store) Settle(ctx context.Context, t sessions.Settled) error {
	state := waiting
	if t.Sent {
		state = sent
	} else if t.Failed {
		state = failed
	}
	n, err := s.q.OutboxSettle(ctx, s.pool, &dbsqlc.OutboxSettleParams{
		SessionKey: t.Key, ID: t.ID, State: state, Part: count(t.Part), Via: clean(t.Via), Error: clean(t.Error), NextAt: t.NextAt,
		Erased: sessions.ErasedText,
	})
	if err == nil && n == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("settling reply %d of session %s: %w", t.ID, t.Key, refused(err))
	}
	return nil
}
