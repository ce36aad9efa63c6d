package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Accept implements sessions.Inbox.
func (s *Inbox) Accept(ctx context.Context, owner sessions.ReplicaID, key sessions.Key, m sessions.Message) (sessions.Accepted, error) {
	return s.AcceptHere(ctx, owner, key, m, nil)
}

// AcceptHere implements sessions.Inbox, repeated by [pg.DB.RetryWhileDown]. A message that an earlier try stored counts as
// new when the answer to that try was lost, since its caller received nothing.
func (s *Inbox) AcceptHere(
	ctx context.Context, owner sessions.ReplicaID, key sessions.Key, m sessions.Message, among []sessions.Key,
) (a sessions.Accepted, err error) {
	lost := false
	err = s.db.RetryWhileDown(ctx, func() (err error) {
		one, err := newAcceptance(s.db, owner, key, m, among)
		if err != nil {
			return err
		}
		one.again = lost
		a, err = one.run(ctx)
		// Otherwise it never reached the server.
		lost = lost || err != nil && (one.stored || !pgconn.SafeToRetry(err))
		return err
	})
	if err != nil {
		return sessions.Accepted{}, fmt.Errorf("storing a message: %w", err)
	}
	a.New = a.New || lost && a.EventID != 0
	return a, nil
}

// AcceptIn is one try of [Inbox.Accept], in a transaction of the caller.
func (s *Inbox) AcceptIn(
	ctx context.Context, tx pgx.Tx, owner sessions.ReplicaID, key sessions.Key, m sessions.Message,
) (a sessions.Accepted, err error) {
	one, err := newAcceptance(s.db, owner, key, m, nil)
	if err != nil {
		return sessions.Accepted{}, err
	}
	err = pgx.BeginFunc(ctx, tx, func(part pgx.Tx) (err error) { // a guard ends the part
		one.tx = part
		a, err = one.try(ctx)
		return err
	})
	return outcome(key, a, err)
}

// acceptance is a try to store a message.
type acceptance struct {
	db    *pg.DB
	tx    pgx.Tx // nil: it has transactions of its own
	owner sessions.ReplicaID
	key   sessions.Key
	again bool // an earlier try may have stored it

	message *dbsqlc.MessageAddParams
	session *dbsqlc.SessionAddParams
	kept    *dbsqlc.MessageKeptParams
	here    []*dbsqlc.MessageHereParams // other sessions that may have it
	read    *dbsqlc.InboxSessionParams  // with the pair of the sender's ids
	stored  bool                        // by this try
}

func newAcceptance(db *pg.DB, owner sessions.ReplicaID, key sessions.Key, m sessions.Message, among []sessions.Key) (*acceptance, error) {
	id := pg.Clean(string(m.ID))
	if id == "" {
		return nil, fmt.Errorf("it has no id to know it by: %w", sessions.ErrRefused)
	}
	message, err := convert.MessageBody(m)
	if err != nil {
		return nil, err
	}
	robot := sessions.RobotCode(pg.Clean(string(m.RobotCode)))
	kept := &dbsqlc.MessageKeptParams{Mark: pg.DeletionMark(pg.ConversationKey(key), id), SessionMark: pg.DeletionMark(key, id)}
	if len(among) > 0 {
		kept.GroupKey = string(sessions.ScopeGroup.Key(m))
	}
	var here []*dbsqlc.MessageHereParams
	for _, other := range among {
		if other != key {
			here = append(here, &dbsqlc.MessageHereParams{SessionKey: other, MsgID: id, Senders: sendersOf(m), SessionMark: pg.DeletionMark(other, id)})
		}
	}
	return &acceptance{
		db: db, owner: owner, key: key, kept: kept, here: here,
		message: &dbsqlc.MessageAddParams{
			SessionKey: key, MsgID: id, Content: pg.Clean(m.Text), Message: message,
			SenderID: sessions.UserID(pg.Clean(string(m.SenderID))), SenderNick: pg.Clean(m.SenderNick), SentAt: sentAt(m, db.Clock.Now()),
		},
		session: &dbsqlc.SessionAddParams{
			SessionKey: key, RobotCode: robot, ConversationID: sessions.ConversationID(pg.Clean(string(m.ConversationID))),
			ConversationType: m.ConversationType, Title: pg.Clean(m.ConversationTitle), Owner: string(owner),
		},
		read: &dbsqlc.InboxSessionParams{
			SessionKey: key, RobotCode: robot, EncryptedID: pg.Clean(string(m.EncryptedID)), StaffID: pg.Clean(string(m.StaffID)),
		},
	}, nil
}

// A time of sending that is further off can't be true.
const maxSentOff = time.Hour

// sentAt is when a message was sent, by the storage's clock. Otherwise it is the time of arrival.
func sentAt(m sessions.Message, now time.Time) time.Time {
	if off := m.SentAt.Sub(now); !m.SentAt.IsZero() && off.Abs() <= maxSentOff {
		return m.SentAt
	}
	if m.ReceivedAt.IsZero() {
		return now
	}
	return now.Add(-time.Since(m.ReceivedAt))
}

var (
	errDeleted   = errors.New("the message was deleted with its session")
	errElsewhere = errors.New("the message may belong to another session")
)

func (a *acceptance) run(ctx context.Context) (sessions.Accepted, error) {
	done, err := a.try(ctx)
	return outcome(a.key, done, err)
}

func outcome(key sessions.Key, a sessions.Accepted, err error) (sessions.Accepted, error) {
	switch {
	case errors.Is(err, errDeleted):
		return sessions.Accepted{Lease: sessions.Lease{Key: key}}, nil
	case errors.Is(err, errElsewhere):
		return sessions.Accepted{Elsewhere: true}, nil
	case err != nil:
		return sessions.Accepted{}, err
	}
	return a, nil
}

func (a *acceptance) try(ctx context.Context) (sessions.Accepted, error) {
	event, row, err := a.store(ctx)
	known := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !known {
		return sessions.Accepted{}, err
	}
	done := sessions.Accepted{New: !known, EventID: event, Lease: sessions.Lease{Key: a.key}}
	if known {
		found, err := a.db.Q.MessageFind(ctx, a.conn(), &dbsqlc.MessageFindParams{SessionKey: a.key, MsgID: a.message.MsgID})
		if err != nil {
			return sessions.Accepted{}, err
		}
		done.EventID, done.Lease.Owner, done.Lease.Term = found.ID, sessions.ReplicaID(found.Owner), found.LeaseTerm
		if row != nil && !a.again { // without its session it was being stored at this moment, or its process died
			return done, nil
		}
	}
	if row, done.Clash, err = a.complete(ctx, done.EventID, row); err != nil {
		return sessions.Accepted{}, err
	}
	if row != nil {
		done.Lease.Owner, done.Lease.Term = sessions.ReplicaID(row.Owner), row.Term
	}
	if done.Lease.Owner == a.owner {
		return done, nil
	}
	payload := string(done.Lease.Owner) + "|" + string(a.key)
	if a.tx != nil { // it goes with the commit of the caller
		return done, a.db.Q.Notify(ctx, a.tx, payload)
	}
	wake(ctx, a.db.Q, a.db.Pool, payload)
	return done, nil
}

func (a *acceptance) pipeline() *pg.Pipeline {
	if a.tx != nil {
		return pg.PipelineIn(a.tx)
	}
	return a.db.Pool.Pipeline()
}

func (a *acceptance) conn() dbsqlc.DBTX {
	if a.tx != nil {
		return a.tx
	}
	return a.db.Pool
}

// store writes the message, and reads its session. It returns pgx.ErrNoRows for a message that was stored before.
func (a *acceptance) store(ctx context.Context) (int64, *dbsqlc.InboxSessionRow, error) {
	p := a.pipeline()
	defer p.Close()
	added := a.db.Q.MessageAdd(ctx, p, []*dbsqlc.MessageAddParams{a.message})
	kept := a.db.Q.MessageKept(ctx, p, []*dbsqlc.MessageKeptParams{a.kept})
	here := a.db.Q.MessageHere(ctx, p, a.here)
	session := a.db.Q.InboxSession(ctx, p, []*dbsqlc.InboxSessionParams{a.read})
	err := p.Send(ctx)
	switch {
	case pg.IsCode(pg.Done(kept.Exec), pg.DivisionByZero):
		return 0, nil, errDeleted
	case pg.IsCode(err, pg.RootOfNegative), pg.IsCode(pg.Done(here.Exec), pg.DivisionByZero):
		return 0, nil, errElsewhere
	case err != nil:
		return 0, nil, err
	}
	row, err := readSession(session)
	if err != nil {
		return 0, nil, err
	}
	event, err := pg.One(added.QueryRow)
	a.stored = err == nil
	return event, row, err
}

func readSession(session *dbsqlc.InboxSessionBatchResults) (*dbsqlc.InboxSessionRow, error) {
	row, err := pg.One(session.QueryRow)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &row, err
}

// missing are the parts that an accepted message needs besides.
type missing struct {
	session, lease, name bool
	pair, use            bool // ids of the sender
}

func (a *acceptance) missing(row *dbsqlc.InboxSessionRow) missing {
	both := a.read.EncryptedID != "" && a.read.StaffID != ""
	if row == nil {
		return missing{session: true, pair: both}
	}
	alive := row.HeartbeatAt != nil && row.HeartbeatAt.After(row.Clock.Add(-a.db.TTL))
	kind := a.session.ConversationType
	return missing{
		lease: row.Owner != string(a.owner) && !alive,
		name: a.session.Title != "" && row.Title != a.session.Title ||
			kind != "" && row.ConversationType != sessions.Group && row.ConversationType != kind,
		pair: both && row.SeenAt == nil,
		use:  both && row.SeenAt != nil && row.Clock.Sub(*row.SeenAt) >= 24*time.Hour,
	}
}

// A session can change between a look at it and the next step.
const maxSteps = 3

// complete creates the session of a message, takes its lease and notes what the message says about it, as far as that is missing.
// A session without its row is left to the replica whose turn is open: see [sessions.Inbox].
func (a *acceptance) complete(
	ctx context.Context, event int64, row *dbsqlc.InboxSessionRow,
) (_ *dbsqlc.InboxSessionRow, clash bool, err error) {
	for range maxSteps {
		m := a.missing(row)
		if m == (missing{}) {
			break
		}
		next, clashes, err := a.add(ctx, event, m)
		if m.session && pg.IsCode(err, pg.DivisionByZero) { // an outsider deleted the session's row
			if _, err := reviveSessions(ctx, a.db, nil); err != nil {
				return nil, false, err
			}
			m.session = false
			next, clashes, err = a.add(ctx, event, m)
		}
		if err != nil {
			return nil, false, err
		}
		row, clash = next, clash || clashes
		if row == nil {
			break
		}
	}
	return row, clash, nil
}

// add writes the missing parts, and reads the session again. clash: a new pair has an encrypted id of another one.
func (a *acceptance) add(ctx context.Context, event int64, m missing) (row *dbsqlc.InboxSessionRow, clash bool, err error) {
	p, one := a.pipeline(), *a.read
	if a.tx == nil {
		a.db.Q.CommitUnsynced(ctx, p, []string{"off"})
	}
	if m.session {
		session := *a.session
		session.Event = event
		a.db.Q.SessionAdd(ctx, p, []*dbsqlc.SessionAddParams{&session})
		a.db.Q.SessionIsNew(ctx, p, []*dbsqlc.SessionIsNewParams{{SessionKey: a.key, Event: event}})
	}
	if m.lease {
		a.db.Q.LeaseTake(ctx, p, []*dbsqlc.LeaseTakeParams{{SessionKey: a.key, Owner: string(a.owner), TtlSeconds: a.db.TTL.Seconds()}})
	}
	if m.name {
		a.db.Q.SessionName(ctx, p, []*dbsqlc.SessionNameParams{{
			SessionKey: a.key, Title: a.session.Title, ConversationType: string(a.session.ConversationType),
		}})
	}
	var pair []*dbsqlc.SenderIDAddParams
	var known []*dbsqlc.SenderIDsOfParams
	if m.pair {
		pair = append(pair, &dbsqlc.SenderIDAddParams{EncryptedID: one.EncryptedID, RobotCode: one.RobotCode, StaffID: one.StaffID})
		known = append(known, &dbsqlc.SenderIDsOfParams{EncryptedID: one.EncryptedID, RobotCode: one.RobotCode})
	}
	added, all := a.db.Q.SenderIDAdd(ctx, p, pair), a.db.Q.SenderIDsOf(ctx, p, known)
	if m.use {
		a.db.Q.SenderIDSee(ctx, p, []*dbsqlc.SenderIDSeeParams{{EncryptedID: one.EncryptedID, RobotCode: one.RobotCode, StaffID: one.StaffID}})
	}
	session := a.db.Q.InboxSession(ctx, p, []*dbsqlc.InboxSessionParams{&one})
	if err := p.Send(ctx); err != nil {
		return nil, false, err
	}
	pairs, err := pg.Found(added.QueryRow)
	if err != nil {
		return nil, false, err
	}
	counts, err := pg.Found(all.QueryRow)
	if err != nil {
		return nil, false, err
	}
	row, err = readSession(session)
	return row, len(pairs) > 0 && counts[0] > 1, err
}
