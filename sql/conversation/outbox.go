package conversation

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

const (
	sending = "sending"
	waiting = "waiting"
	sent    = "sent"
	failed  = "failed"
)

// Unsent implements sessions.Outbox. It claims due rows, which have no NextAt, for the lease's owner.
func (s *Store) Unsent(ctx context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	rows, err := s.Q.OutboxUnsent(ctx, s.Pool, &dbsqlc.OutboxUnsentParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, HandSeconds: pg.ClaimTime.Seconds(),
	})
	unsent, err := outgoing(l, rows, err, func(r dbsqlc.OutboxUnsentRow) (sessions.Outgoing, []byte) {
		o := sessions.Outgoing{
			ID: r.ID, Refusals: r.Refusals, Part: r.Part, Joint: r.Joint, Maybe: r.Resumed, Took: r.Took, Due: r.Due, Via: r.Via, Created: r.CreatedAt,
			Reply: sessions.Reply{Nonce: r.Nonce},
		}
		if r.State == waiting {
			o.NextAt = r.NextAt
		}
		return o, r.Target
	})
	if err != nil {
		return nil, fmt.Errorf("listing unsent replies: %w", err)
	}
	return unsent, nil
}

// Announce implements sessions.Outbox.
func (s *Store) Announce(ctx context.Context, l sessions.Lease, r sessions.Reply) ([]sessions.Outgoing, error) {
	target, err := pg.CleanJSON(r.Target)
	if err != nil {
		return nil, err
	}
	row, err := s.Q.OutboxAnnounce(ctx, s.Pool, &dbsqlc.OutboxAnnounceParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Target: target, Body: pg.Clean(r.Text), Nonce: pg.Clean(r.Nonce),
		HandSeconds: pg.ClaimTime.Seconds(),
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storing a notice: %w", err)
	}
	return []sessions.Outgoing{{ID: row.ID, Key: l.Key, Reply: r, Created: row.CreatedAt}}, nil
}

// Claim implements sessions.Outbox.
func (s *Store) Claim(ctx context.Context, l sessions.Lease, t sessions.Try) ([]sessions.Outgoing, error) {
	rows, err := s.Q.OutboxClaim(ctx, s.Pool, &dbsqlc.OutboxClaimParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Ids: t.IDs, Joint: t.Joint, Part: pg.Clamp(t.Part), Nonce: pg.Clean(t.Nonce), HandSeconds: pg.ClaimTime.Seconds(),
	})
	claimed, err := outgoing(l, rows, err, func(r dbsqlc.OutboxClaimRow) (sessions.Outgoing, []byte) {
		return sessions.Outgoing{
			ID: r.ID, Attempts: r.Attempts, Refusals: r.Refusals, Part: r.Part, Joint: t.Joint, Maybe: r.Resumed, Created: r.CreatedAt,
			Reply: sessions.Reply{Text: r.Body, Nonce: r.Nonce},
		}, r.Target
	})
	if err != nil {
		return nil, fmt.Errorf("claiming replies: %w", err)
	}
	return claimed, nil
}

// The lease is lost if there is no row; one with the id 0 says that no reply is open.
func outgoing[R any](l sessions.Lease, rows []R, err error, read func(R) (sessions.Outgoing, []byte)) ([]sessions.Outgoing, error) {
	if err == nil && len(rows) == 0 {
		err = sessions.ErrLeaseLost
	}
	if err != nil {
		return nil, err
	}
	var replies []sessions.Outgoing
	for _, r := range rows {
		o, target := read(r)
		if o.ID == 0 {
			continue
		}
		o.Key = l.Key
		if o.Reply.Target, err = convert.Target(target); err != nil {
			return nil, fmt.Errorf("reading the target of reply %d: %w", o.ID, err)
		}
		replies = append(replies, o)
	}
	return replies, nil
}

// Settle implements sessions.Outbox. It is not fenced: a sent reply stays sent after the session changes hands.
func (s *Store) Settle(ctx context.Context, t sessions.Settled) error {
	state := waiting
	if t.Sent {
		state = sent
	} else if t.Failed {
		state = failed
	}
	err := s.settles.Submit(ctx, &dbsqlc.OutboxSettleParams{
		SessionKey: t.Key, ID: t.ID, State: state, Part: pg.Clamp(t.Part), Via: pg.Clean(t.Via), Error: pg.Clean(t.Error), NextAt: t.NextAt,
		Maybe: t.Maybe, Refused: t.Refused, Attempt: pg.Clamp(t.Attempt), Card: string(t.Card), Erased: sessions.ErasedText,
	})
	if err != nil {
		return fmt.Errorf("settling reply %d: %w", t.ID, pg.AsRefused(err))
	}
	return nil
}

// PutDown implements sessions.Outbox.
func (s *Store) PutDown(ctx context.Context, owner sessions.ReplicaID) error {
	if err := s.Q.OutboxPutDown(ctx, s.Pool, string(owner)); err != nil {
		return fmt.Errorf("putting down the replies of replica %s: %w", owner, err)
	}
	return nil
}

// settleAll stores results in one transaction, or each in its own when the server refuses that.
func (s *Store) settleAll(ctx context.Context, all []*dbsqlc.OutboxSettleParams) []error {
	errs := make([]error, len(all))
	var undone error
	for tries := 1; ; tries++ {
		marks := s.Q.OutboxSettle(ctx, s.Pool, all)
		marks.QueryRow(func(i int, _ int64, err error) { errs[i] = pg.AsNotFound(err) })
		// The rows arrive before the commit. Only Close returns the commit's error, or the one that rolled all back.
		if undone = marks.Close(); !pg.Clashed(ctx, undone, tries) {
			break
		}
	}
	_, refused := errors.AsType[*pgconn.PgError](undone)
	for i := range all {
		switch {
		case refused && len(all) > 1:
			errs[i] = s.settleAll(ctx, all[i:i+1])[0]
		case undone != nil:
			errs[i] = undone
		}
	}
	return errs
}
