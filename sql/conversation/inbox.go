package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// Inbox makes messages durable.
type Inbox struct {
	db         *pg.DB
	identities *identity.Store
}

// NewInbox returns the inbox of a database.
func NewInbox(db *pg.DB, identities *identity.Store) *Inbox { return &Inbox{db, identities} }

// Revive implements sessions.Inbox. Each session has a transaction of its own.
func (s *Inbox) Revive(ctx context.Context, under []sessions.Lease) ([]sessions.Key, error) {
	return reviveSessions(ctx, s.db, under)
}

func reviveSessions(ctx context.Context, db *pg.DB, under []sessions.Lease) ([]sessions.Key, error) {
	turns, err := reviveEach(ctx, db, under)
	if err != nil {
		return nil, fmt.Errorf("reviving deleted sessions: %w", err)
	}
	return turns, nil
}

func reviveEach(ctx context.Context, db *pg.DB, under []sessions.Lease) ([]sessions.Key, error) {
	rows, err := db.Q.SessionsMissing(ctx, db.Pool)
	if err != nil {
		return nil, err
	}
	turns := []sessions.Key{}
	for _, row := range rows {
		r := &dbsqlc.SessionReviveParams{SessionKey: row.SessionKey}
		if row.Term > 0 {
			i := slices.IndexFunc(under, func(l sessions.Lease) bool {
				return l.Key == row.SessionKey && (l.Owner == "" || l.Term == row.Term)
			})
			switch {
			case i < 0:
				turns = append(turns, row.SessionKey)
				continue
			case under[i].Owner == "":
				r.Fallen = row.Term
			default:
				r.Owner, r.Term = string(under[i].Owner), row.Term
			}
		}
		p := db.Pool.Pipeline()
		db.ReviveUnder(ctx, p, r)
		if err := p.Send(ctx); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

// Waiting implements sessions.Inbox. Each replica calls it all the time, so it also ends stalled transactions, which messages may wait
// for. Without that look the sweep goes on.
func (s *Inbox) Waiting(ctx context.Context, owner sessions.ReplicaID, limit int) ([]sessions.Key, error) {
	if err := s.db.EndStalled(ctx); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Looking for stalled transactions failed")
	}
	keys, err := s.db.Q.SessionsWaiting(ctx, s.db.Pool, &dbsqlc.SessionsWaitingParams{
		Owner: string(owner), TtlSeconds: s.db.TTL.Seconds(), MaxSessions: pg.Clamp(limit),
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
func (s *Inbox) Listen(ctx context.Context, owner sessions.ReplicaID, wake func(sessions.Key)) error {
	err := s.listen(ctx, owner, wake)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // ctx ended it
	}
	return fmt.Errorf("listening for other replicas: %w", err)
}

// listen uses a connection of its own, since a pooler in transaction mode loses notifications. It wakes all sessions at its
// beginning: notifications before it are lost.
func (s *Inbox) listen(ctx context.Context, owner sessions.ReplicaID, wake func(sessions.Key)) error {
	conn, err := pgx.ConnectConfig(ctx, s.db.ListenConfig)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if err := s.db.Q.ListenForWakes(ctx, conn); err != nil {
		return err
	}
	wake("")
	for {
		n, err := nextNotification(ctx, s.db.Q, conn)
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
	server, err := q.ReadOnly(alive, conn)
	if err == nil && server.ReadOnly {
		err = pg.ErrReadOnly
	}
	return nil, err
}

// LearnIDs implements sessions.Inbox, repeated by [pg.DB.RetryWhileDown].
func (s *Inbox) LearnIDs(ctx context.Context, m sessions.Message) error {
	if m.EncryptedID == "" || m.StaffID == "" {
		return nil
	}
	err := s.db.RetryWhileDown(ctx, func() error { return s.identities.AddPair(ctx, m.RobotCode, m.EncryptedID, m.StaffID) })
	if err != nil {
		return fmt.Errorf("storing the ids of a sender: %w", err)
	}
	return nil
}

// LinkedIDs implements sessions.Inbox, repeated by [pg.DB.RetryWhileDown].
func (s *Inbox) LinkedIDs(ctx context.Context, robot sessions.RobotCode, id sessions.UserID) (linked []sessions.UserID, err error) {
	err = s.db.RetryWhileDown(ctx, func() (err error) {
		linked, err = s.identities.Linked(ctx, robot, id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the ids of a sender: %w", err)
	}
	return linked, nil
}

// Pending implements sessions.Inbox.
func (s *Inbox) Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	rows, err := s.db.Q.MessagesPending(ctx, s.db.Pool, &dbsqlc.MessagesPendingParams{
		SessionKey: key, MaxChars: sessions.MaxPeek, MaxMessages: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing pending messages: %w", err)
	}
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		e, err := convert.Event(sessions.Event{
			Key: key, ID: r.ID, Role: sessions.RoleUser, State: sessions.Pending, Attempts: r.Attempts, Content: r.Content,
			SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: pg.OrZero(r.MsgID), CreatedAt: r.CreatedAt, Admitted: r.Admitted,
		}, convert.EventJSON{Message: r.Message})
		if err != nil {
			return nil, err
		}
		if e.Message != nil {
			e.Message.Text = "" // only its beginning is read
		}
		events = append(events, e)
	}
	return events, nil
}
