package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Accept implements sessions.Inbox.
func (s *Store) Accept(ctx context.Context, owner sessions.ReplicaID, key sessions.Key, m sessions.Message) (sessions.Accepted, error) {
	return s.AcceptHere(ctx, owner, key, m, sessions.PlaceQuery{})
}

// AcceptHere implements sessions.Inbox, repeated by [pg.DB.RetryWhileDown]. A message that an earlier try stored counts as
// new when the answer to that try was lost, since its caller received nothing.
func (s *Store) AcceptHere(
	ctx context.Context, owner sessions.ReplicaID, key sessions.Key, m sessions.Message, q sessions.PlaceQuery,
) (a sessions.Accepted, err error) {
	lost := false
	err = s.RetryWhileDown(ctx, func() (err error) {
		a, err = s.acceptIn(ctx, s.Pool, owner, key, m, q)
		lost = lost || err != nil && !pgconn.SafeToRetry(err) // otherwise it never reached the server
		return err
	})
	if err != nil {
		return sessions.Accepted{}, fmt.Errorf("storing a message: %w", err)
	}
	a.New = a.New || lost && a.EventID != 0
	return a, nil
}

// AcceptIn is one try of [Store.Accept], in a transaction of the caller.
func (s *Store) AcceptIn(
	ctx context.Context, db dbsqlc.DBTX, owner sessions.ReplicaID, key sessions.Key, m sessions.Message,
) (sessions.Accepted, error) {
	return s.acceptIn(ctx, db, owner, key, m, sessions.PlaceQuery{})
}

func (s *Store) acceptIn(
	ctx context.Context, db dbsqlc.DBTX, owner sessions.ReplicaID, key sessions.Key, m sessions.Message, q sessions.PlaceQuery,
) (sessions.Accepted, error) {
	id := pg.Clean(string(m.ID))
	if id == "" {
		return sessions.Accepted{}, fmt.Errorf("it has no id to know it by: %w", sessions.ErrRefused)
	}
	message, err := convert.MessageBody(m)
	if err != nil {
		return sessions.Accepted{}, err
	}
	robot, encrypted, staff := sessions.RobotCode(pg.Clean(string(m.RobotCode))), pg.Clean(string(m.EncryptedID)), pg.Clean(string(m.StaffID))
	others := slices.DeleteFunc(slices.Clone(q.Keys), func(k sessions.Key) bool { return k == key })
	row, err := s.Q.MessageAccept(ctx, db, &dbsqlc.MessageAcceptParams{
		GroupKey: string(q.Group), OtherKeys: textsOf(others), Senders: textsOf(q.Senders),
		Owner: string(owner), SessionKey: string(key), MsgID: id, TtlSeconds: s.TTL.Seconds(),
		Title:     pg.Clean(m.ConversationTitle),
		RobotCode: robot, ConversationType: m.ConversationType,
		ConversationID: sessions.ConversationID(pg.Clean(string(m.ConversationID))),
		Content:        pg.Clean(m.Text), Message: message,
		SenderID: sessions.UserID(pg.Clean(string(m.SenderID))), SenderNick: pg.Clean(m.SenderNick),
		SentAt: pg.OrNil(m.SentAt), Waited: waited(m).Seconds(),
		EncryptedID: encrypted, StaffID: staff,
	})
	if err != nil {
		return sessions.Accepted{}, err
	}
	if row.IsOld {
		seen := dbsqlc.SenderIDSeeParams{EncryptedID: encrypted, RobotCode: robot, StaffID: staff}
		if err := s.Q.SenderIDSee(ctx, db, &seen); err != nil {
			return sessions.Accepted{}, err
		}
	}
	if row.IsElsewhere {
		return sessions.Accepted{Elsewhere: true}, nil
	}
	if row.IsNew && row.Owner == "" { // an outsider deleted the session's row
		if row.Owner, row.Term, err = restore(ctx, s, db, owner, key); err != nil {
			return sessions.Accepted{}, err
		}
	}
	if row.ID == 0 && !row.IsDeleted { // the same message was being stored at this moment
		other, err := s.Q.MessageFind(ctx, db, &dbsqlc.MessageFindParams{SessionKey: key, MsgID: id})
		row = dbsqlc.MessageAcceptRow{ID: other.ID, Owner: other.Owner, Term: other.LeaseTerm}
		if err != nil {
			return sessions.Accepted{}, err
		}
	}
	lease := sessions.Lease{Key: key, Owner: sessions.ReplicaID(row.Owner), Term: row.Term}
	return sessions.Accepted{New: row.IsNew, EventID: row.ID, Lease: lease, Clash: row.IsClash}, nil
}

// restore creates the row of a session again, and returns its lease, of owner if it is free. Without an owner the row is left to
// the replica whose turn is open: see [sessions.Inbox].
func restore(ctx context.Context, s *Store, db dbsqlc.DBTX, owner sessions.ReplicaID, key sessions.Key) (string, int64, error) {
	if err := s.DB.Revive(ctx, db); err != nil {
		return "", 0, err
	}
	row, err := s.Q.LeaseAcquire(ctx, db, &dbsqlc.LeaseAcquireParams{SessionKey: key, Owner: string(owner), TtlSeconds: s.TTL.Seconds()})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", 0, nil
	}
	return row.Owner, row.Term, err
}

func waited(m sessions.Message) time.Duration {
	if m.ReceivedAt.IsZero() {
		return 0
	}
	return time.Since(m.ReceivedAt)
}

// Revive implements sessions.Inbox.
func (s *Store) Revive(ctx context.Context, under []sessions.Lease) ([]sessions.Key, error) {
	n := len(under)
	p := &dbsqlc.SessionsReviveParams{Logs: []string{}, Keys: make([]string, n), Owners: make([]string, n), Terms: make([]int64, n)}
	for i, l := range under {
		p.Keys[i], p.Owners[i], p.Terms[i] = string(l.Key), string(l.Owner), l.Term
	}
	rows, err := s.Q.SessionsRevive(ctx, s.Pool, p)
	if err != nil {
		return nil, fmt.Errorf("reviving deleted sessions: %w", err)
	}
	turns := make([]sessions.Key, len(rows))
	for i, key := range rows {
		turns[i] = sessions.Key(key)
	}
	return turns, nil
}

// Waiting implements sessions.Inbox.
func (s *Store) Waiting(ctx context.Context, owner sessions.ReplicaID, limit int) ([]sessions.Key, error) {
	keys, err := s.Q.SessionsWaiting(ctx, s.Pool, &dbsqlc.SessionsWaitingParams{
		Owner: string(owner), TtlSeconds: s.TTL.Seconds(), MaxSessions: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("looking for waiting sessions: %w", err)
	}
	return keys, nil
}

// listenCheck is the silence after which the listening connection is checked.
const listenCheck = 15 * time.Second

// Listen implements sessions.Inbox. It calls wake with the empty key once it listens, since earlier notifications were
// missed.
func (s *Store) Listen(ctx context.Context, owner sessions.ReplicaID, wake func(sessions.Key)) error {
	err := s.listen(ctx, owner, wake)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // ctx ended it
	}
	return fmt.Errorf("listening for other replicas: %w", err)
}

func (s *Store) listen(ctx context.Context, owner sessions.ReplicaID, wake func(sessions.Key)) error {
	conn, err := pgx.ConnectConfig(ctx, s.ListenConfig)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if err := s.Q.ListenForWakes(ctx, conn); err != nil {
		return err
	}
	wake("")
	for {
		n, err := nextNotification(ctx, s.Q, conn)
		if err != nil {
			return err
		}
		if n == nil {
			continue
		}
		to, key, _ := strings.Cut(n.Payload, "|")
		if to == "" || to == string(owner) { // an empty owner addresses every replica, an empty key every session
			wake(sessions.Key(key))
		}
	}
}

// nextNotification returns nil after a long silence if the connection lives and leads to the writable server. A
// vanished or demoted server would never notify.
func nextNotification(ctx context.Context, q *dbsqlc.Queries, conn *pgx.Conn) (*pgconn.Notification, error) {
	silence, cancel := context.WithTimeout(ctx, listenCheck)
	defer cancel()
	n, err := conn.WaitForNotification(silence)
	if err == nil || ctx.Err() != nil || !pgconn.Timeout(err) {
		return n, err
	}
	alive, cancel := context.WithTimeout(ctx, listenCheck)
	defer cancel()
	readOnly, err := q.ReadOnly(alive, conn)
	if err == nil && readOnly {
		err = pg.ErrReadOnly
	}
	return nil, err
}

// StaffIDs implements sessions.Inbox, repeated by [pg.DB.RetryWhileDown].
func (s *Store) StaffIDs(ctx context.Context, robot sessions.RobotCode, encrypted sessions.UserID) (staff []sessions.UserID, err error) {
	err = s.RetryWhileDown(ctx, func() (err error) {
		staff, err = s.identities.StaffIDs(ctx, robot, encrypted)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the staff ids of a sender: %w", err)
	}
	return staff, nil
}

// Pending implements sessions.Inbox.
func (s *Store) Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	rows, err := s.Q.MessagesPending(ctx, s.Pool, &dbsqlc.MessagesPendingParams{
		SessionKey: key, MaxChars: sessions.MaxPeek, MaxMessages: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing pending messages: %w", err)
	}
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		e, err := convert.Event(&dbsqlc.Event{
			SessionKey: key, ID: r.ID, Role: sessions.RoleUser, State: sessions.Pending, Attempts: r.Attempts, Content: r.Content,
			SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: r.MsgID, Message: r.Message, CreatedAt: r.CreatedAt,
		})
		if err != nil {
			return nil, err
		}
		if e.Message != nil {
			e.Message.Text = "" // only its beginning is read
		}
		e.Admitted = r.Admitted
		events = append(events, e)
	}
	return events, nil
}
