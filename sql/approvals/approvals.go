package approvals

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/conversation"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store keeps approvals.
type Store struct {
	db    *pg.DB
	inbox *conversation.Inbox
}

// New returns the approvals of a database.
func New(db *pg.DB, inbox *conversation.Inbox) *Store { return &Store{db, inbox} }

// WaitingApprovals implements sessions.Approvals.
func (s *Store) WaitingApprovals(ctx context.Context, key sessions.Key) ([]sessions.Approval, int64, error) {
	rows, err := s.db.Q.ApprovalsWaiting(ctx, s.db.Pool, key)
	if err != nil {
		return nil, 0, fmt.Errorf("listing waiting approvals: %w", err)
	}
	last, err := s.db.Q.ApprovalNumber(ctx, s.db.Pool, key)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the last number of an approval: %w", err)
	}
	return all(rows), last, nil
}

// FindApprovals implements sessions.Approvals.
func (s *Store) FindApprovals(ctx context.Context, key sessions.Key, q sessions.ApprovalQuery) ([]sessions.FoundApproval, error) {
	rows, err := s.db.Q.ApprovalsFind(ctx, s.db.Pool, &dbsqlc.ApprovalsFindParams{
		SessionKey: key, Person: pg.Clean(string(q.Person)), ID: q.ID, Turn: q.Turn, Event: q.Event,
	})
	if err != nil {
		return nil, fmt.Errorf("looking for approvals: %w", err)
	}
	list := make([]sessions.FoundApproval, len(rows))
	for i := range rows {
		r := &rows[i]
		list[i] = sessions.FoundApproval{Approval: convert.Approval(&r.Approval), Asked: r.Asked, Overdue: r.Overdue, Asker: r.Asker, Decider: r.Decider}
	}
	return list, nil
}

// DecideApprovals implements sessions.Approvals.
func (s *Store) DecideApprovals(ctx context.Context, l sessions.Lease, d sessions.Decision) (decided []sessions.Approval, err error) {
	action := "approve_call"
	if d.State == sessions.ApprovalRejected {
		action = "reject_call"
	}
	err = s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		rows, err := s.db.Q.ApprovalsDecide(ctx, tx, &dbsqlc.ApprovalsDecideParams{
			SessionKey: l.Key, Ids: d.IDs, State: string(d.State), DecidedBy: pg.Clean(string(d.By)), Event: d.Event,
		})
		if err != nil {
			return err
		}
		decided = all(rows)
		for _, a := range decided {
			if err := s.audit(ctx, tx, string(d.By), action, a); err != nil {
				return err
			}
		}
		if len(decided) == 0 {
			return nil
		}
		return s.db.Q.ApprovalsDecided(ctx, tx, &dbsqlc.ApprovalsDecidedParams{SessionKey: l.Key, Event: d.Event, Outcome: string(sessions.Decided)})
	})
	if err != nil {
		return nil, fmt.Errorf("deciding on approvals: %w", err)
	}
	return decided, nil
}

// CountApprovals implements sessions.Approvals.
func (s *Store) CountApprovals(ctx context.Context) (int, error) {
	n, err := s.db.Q.ApprovalsCount(ctx, s.db.Pool)
	if err != nil {
		return 0, fmt.Errorf("counting approvals: %w", err)
	}
	return int(n), nil
}

// DueApprovals implements sessions.Approvals.
func (s *Store) DueApprovals(ctx context.Context, after sessions.Approval, limit int) ([]sessions.Approval, error) {
	rows, err := s.db.Q.ApprovalsDue(ctx, s.db.Pool, &dbsqlc.ApprovalsDueParams{
		After: after.ExpiresAt, AfterKey: string(after.Key), AfterID: after.ID, MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing due approvals: %w", err)
	}
	return all(rows), nil
}

// ExpireApproval implements sessions.Approvals. It locks the session's row first, as erasures do. Without the message that asked nothing is
// stored: no answer has a destination.
func (s *Store) ExpireApproval(
	ctx context.Context, owner sessions.ReplicaID, due sessions.Approval, make func(asked sessions.Message) sessions.Message,
) (a sessions.Accepted, err error) {
	err = s.db.WithSession(ctx, due.Key, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		n, err := s.db.Q.ApprovalExpire(ctx, tx, &dbsqlc.ApprovalExpireParams{SessionKey: due.Key, ID: due.ID})
		if err := pg.Require(n, err, sessions.ErrConflict); err != nil {
			return err
		}
		if err := s.audit(ctx, tx, "", "expire_call", due); err != nil {
			return err
		}
		row, err := s.db.Q.ApprovalMessage(ctx, tx, &dbsqlc.ApprovalMessageParams{SessionKey: due.Key, Event: due.EventID})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		asked, err := convert.WholeEvent(&row)
		if err != nil || asked.Message == nil {
			return errors.Join(sessions.ErrRefused, err)
		}
		a, err = s.inbox.AcceptIn(ctx, tx, owner, due.Key, make(*asked.Message))
		return err
	})
	if err != nil {
		return sessions.Accepted{}, fmt.Errorf("ending the wait for an approval: %w", pg.AsRefused(err))
	}
	return a, nil
}

// audit stores an action on a call, without its arguments.
func (s *Store) audit(ctx context.Context, tx pgx.Tx, actor, action string, a sessions.Approval) error {
	return s.db.Q.ApprovalAudit(ctx, tx, &dbsqlc.ApprovalAuditParams{
		SessionKey: a.Key, Actor: pg.Clean(actor), Action: action, Detail: pg.Clean(a.AuditDetail()),
	})
}

func all(rows []dbsqlc.Approval) []sessions.Approval {
	list := make([]sessions.Approval, len(rows))
	for i := range rows {
		list[i] = convert.Approval(&rows[i])
	}
	return list
}
