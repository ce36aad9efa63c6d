package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

const (
	sent   = "sent"
	failed = "failed"
)

// Outbox holds replies between the commit of their turn and DingTalk's confirmation.
type Outbox struct {
	db      *pg.DB
	settles pg.Batcher[*sessions.SendOutcome]
}

// NewOutbox returns the outbox of a database.
func NewOutbox(db *pg.DB) *Outbox {
	s := &Outbox{db: db}
	s.settles.Do = s.settleAll
	return s
}

// Unsent implements sessions.Outbox. It claims due rows, which have no NextAt, for the lease's owner.
func (s *Outbox) Unsent(ctx context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	open, err := s.db.Q.OutboxIsOpen(ctx, s.db.Pool, &dbsqlc.OutboxIsOpenParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term})
	if err != nil {
		return nil, fmt.Errorf("looking for unsent replies: %w", pg.AsLost(err))
	}
	if !open { // as most often: nothing is locked nor written
		return nil, nil
	}
	p, hand := s.db.Pool.Pipeline(), pg.ClaimTime.Seconds()
	held := holdLease(ctx, s.db.Q, p, l)
	listed := s.db.Q.OutboxUnsent(ctx, p, []*dbsqlc.OutboxUnsentParams{{SessionKey: l.Key, Owner: string(l.Owner)}})
	s.db.Q.OutboxTake(ctx, p, []*dbsqlc.OutboxTakeParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, HandSeconds: hand}})
	s.db.Q.OutboxAdopt(ctx, p, []*dbsqlc.OutboxAdoptParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term}})
	if err := sendHeld(ctx, p, held); err != nil {
		return nil, fmt.Errorf("claiming unsent replies: %w", err)
	}
	rows, err := pg.All(listed.Query)
	unsent, err := outgoing(l, rows, err, func(r dbsqlc.OutboxUnsentRow) (sessions.Outgoing, []byte) {
		o := sessions.Outgoing{
			ID: r.ID, Refusals: r.Refusals, Part: r.Part, Joint: r.Joint, Maybe: r.Resumed, Took: r.Took, Due: r.Due, Via: r.Via, Created: r.CreatedAt,
			Reply: sessions.Reply{Nonce: r.Nonce},
		}
		if !r.Taken {
			o.NextAt = r.NextAt
		}
		return o, r.Target
	})
	if err != nil {
		return nil, fmt.Errorf("listing unsent replies: %w", err)
	}
	return unsent, nil
}

// holdLease queues the first statement of a pipeline, and sendHeld sends all. The error is sessions.ErrLeaseLost when the lease is not the
// current one: nothing was written then.
func holdLease(ctx context.Context, q *dbsqlc.Queries, p *pg.Pipeline, l sessions.Lease) *dbsqlc.LeaseHoldBatchResults {
	return q.LeaseHold(ctx, p, []*dbsqlc.LeaseHoldParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term}})
}

func sendHeld(ctx context.Context, p *pg.Pipeline, held *dbsqlc.LeaseHoldBatchResults) error {
	if err := p.Send(ctx); err != nil {
		return err
	}
	_, err := pg.One(held.QueryRow)
	return pg.AsLost(err)
}

// Announce implements sessions.Outbox.
func (s *Outbox) Announce(ctx context.Context, l sessions.Lease, r sessions.Reply) ([]sessions.Outgoing, error) {
	target, err := pg.CleanJSON(r.Target)
	if err != nil {
		return nil, err
	}
	p := s.db.Pool.Pipeline()
	held := holdLease(ctx, s.db.Q, p, l)
	stored := s.db.Q.OutboxAnnounce(ctx, p, []*dbsqlc.OutboxAnnounceParams{{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Target: target, Body: pg.Clean(r.Text), Nonce: pg.Clean(r.Nonce),
		HandSeconds: pg.ClaimTime.Seconds(),
	}})
	err = sendHeld(ctx, p, held)
	if errors.Is(err, sessions.ErrLeaseLost) {
		return nil, nil
	}
	var row dbsqlc.OutboxAnnounceRow
	if err == nil {
		row, err = pg.One(stored.QueryRow)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storing a notice: %w", err)
	}
	return []sessions.Outgoing{{ID: row.ID, Key: l.Key, Reply: r, Created: row.CreatedAt}}, nil
}

// Claim implements sessions.Outbox.
func (s *Outbox) Claim(ctx context.Context, l sessions.Lease, t sessions.SendAttempt) ([]sessions.Outgoing, error) {
	p := s.db.Pool.Pipeline()
	held := holdLease(ctx, s.db.Q, p, l)
	taken := s.db.Q.OutboxClaim(ctx, p, []*dbsqlc.OutboxClaimParams{{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Ids: t.IDs, Joint: t.Joint, Part: pg.Clamp(t.Part), Nonce: pg.Clean(t.Nonce), Carrier: pg.Clean(t.Carrier), HandSeconds: pg.ClaimTime.Seconds(),
	}})
	if err := sendHeld(ctx, p, held); err != nil {
		return nil, fmt.Errorf("claiming replies: %w", err)
	}
	rows, err := pg.All(taken.Query)
	slices.SortFunc(rows, func(a, b dbsqlc.OutboxClaimRow) int { return cmp.Compare(a.ID, b.ID) })
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

func outgoing[R any](l sessions.Lease, rows []R, err error, read func(R) (sessions.Outgoing, []byte)) ([]sessions.Outgoing, error) {
	if err != nil {
		return nil, err
	}
	var replies []sessions.Outgoing
	for _, r := range rows {
		o, target := read(r)
		o.Key = l.Key
		if o.Reply.Target, err = convert.Target(target); err != nil {
			return nil, fmt.Errorf("reading the target of reply %d: %w", o.ID, err)
		}
		replies = append(replies, o)
	}
	return replies, nil
}

// Settle implements sessions.Outbox. It is not fenced: a sent reply stays sent after the session changes hands.
func (s *Outbox) Settle(ctx context.Context, t sessions.SendOutcome) error {
	if err := s.settles.Submit(ctx, &t); err != nil {
		return fmt.Errorf("settling reply %d: %w", t.ID, pg.AsRefused(err))
	}
	return nil
}

// PutDown implements sessions.Outbox.
func (s *Outbox) PutDown(ctx context.Context, owner sessions.ReplicaID) error {
	p := s.db.Pool.Pipeline()
	s.db.Q.OutboxPutDown(ctx, p, []string{string(owner)})
	s.db.Q.OutboxLeave(ctx, p, []string{string(owner)})
	if err := p.Send(ctx); err != nil {
		return fmt.Errorf("putting down the replies of replica %s: %w", owner, err)
	}
	return nil
}

// settleAll stores results in one transaction, or each in its own when the server refuses that.
func (s *Outbox) settleAll(ctx context.Context, all []*sessions.SendOutcome) []error {
	p, results := s.db.Pool.Pipeline(), make([]func(func(int, int64, error)), len(all))
	for i, t := range all {
		results[i] = queueSettled(ctx, s.db.Q, p, s.db.Clock.Now(), t)
	}
	undone, errs := p.Send(ctx), make([]error, len(all))
	_, refused := errors.AsType[*pgconn.PgError](undone)
	for i := range all {
		switch {
		case refused && len(all) > 1:
			errs[i] = s.settleAll(ctx, all[i:i+1])[0]
		case undone != nil:
			errs[i] = undone
		default:
			_, err := pg.One(results[i])
			errs[i] = pg.AsNotFound(err)
		}
	}
	return errs
}

// queueSettled queues the result of one try. A reply without a card has one statement.
func queueSettled(ctx context.Context, q *dbsqlc.Queries, p *pg.Pipeline, now time.Time, t *sessions.SendOutcome) func(func(int, int64, error)) {
	refusals := 0
	if t.Refused {
		refusals = 1
	}
	carrier := t.Carrier
	if t.Card != "" && t.Card != sessions.CardOpen {
		carrier = "" // the card has it
		q.OutboxCard(ctx, p, []*dbsqlc.OutboxCardParams{{SessionKey: t.Key, ID: t.ID, State: string(t.Card), Carrier: pg.Clean(t.Carrier)}})
	}
	if !t.Sent && !t.Failed {
		return q.OutboxPause(ctx, p, []*dbsqlc.OutboxPauseParams{{
			SessionKey: t.Key, ID: t.ID, Attempt: pg.Clamp(t.Attempt), Part: pg.Clamp(t.Part), Via: pg.Clean(t.Via), Error: pg.Clean(t.Error),
			NextAt: t.NextAt, Maybe: t.Maybe, Refusals: refusals, Carrier: pg.Clean(carrier), Erased: sessions.ErasedText,
		}}).QueryRow
	}
	state := failed
	if t.Sent {
		state = sent
	}
	return q.OutboxSettle(ctx, p, []*dbsqlc.OutboxSettleParams{{
		SessionKey: t.Key, ID: t.ID, State: state, SettledAt: now, Part: pg.Clamp(t.Part), Via: pg.Clean(t.Via), Error: pg.Clean(t.Error),
		Maybe: t.Maybe, Refusals: refusals, Carrier: pg.Clean(carrier), Erased: sessions.ErasedText,
	}}).QueryRow
}
