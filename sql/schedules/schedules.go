package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/conversation"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store keeps schedules.
type Store struct {
	db    *pg.DB
	inbox *conversation.Inbox
}

// New returns the schedules of a database.
func New(db *pg.DB, inbox *conversation.Inbox) *Store { return &Store{db, inbox} }

// AddSchedule implements sessions.Schedules. A refused schedule gives its number back.
func (s *Store) AddSchedule(ctx context.Context, l sessions.Lease, add sessions.Schedule) (sessions.Schedule, error) {
	creator, err := pg.CleanJSON(add.Creator)
	if err != nil {
		return sessions.Schedule{}, err
	}
	var row dbsqlc.Schedule
	err = s.db.WithLease(ctx, l, func(tx pgx.Tx, session *dbsqlc.Session) (err error) {
		origin := pg.Clean(add.Origin)
		row, err = s.db.Q.ScheduleOfOrigin(ctx, tx, &dbsqlc.ScheduleOfOriginParams{SessionKey: l.Key, Origin: origin})
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		robot, conversation := l.Key.Conversation()
		id, err := s.db.Q.ScheduleNumber(ctx, tx, &dbsqlc.ScheduleNumberParams{
			GroupKey: l.Key.Group(), SessionKey: string(l.Key), RobotCode: robot, ConversationID: conversation,
		})
		if err != nil {
			return err
		}
		if err := s.count(ctx, tx, session, add.Creator.SenderID); err != nil {
			return err
		}
		row, err = s.db.Q.ScheduleInsert(ctx, tx, &dbsqlc.ScheduleInsertParams{
			SessionKey: l.Key, ID: id, Kind: add.Kind, DueAt: add.DueAt, Spec: pg.Clean(add.Spec), Text: pg.Clean(add.Text),
			CreatedBy: sessions.UserID(pg.Clean(string(add.Creator.SenderID))), Creator: creator, Origin: origin,
		})
		return err
	})
	if err != nil {
		return sessions.Schedule{}, fmt.Errorf("storing a schedule: %w", pg.AsRefused(err))
	}
	return convert.Schedule(&row), nil
}

// count refuses a further schedule by the bounds of the conversation and of the person. The last fifth of a conversation is for
// people with fewer, so that one person can't use up what all share.
func (s *Store) count(ctx context.Context, tx pgx.Tx, session *dbsqlc.Session, by sessions.UserID) error {
	list, err := s.db.Q.SchedulesOfConversation(ctx, tx, &dbsqlc.SchedulesOfConversationParams{
		SessionKey: string(session.SessionKey), RobotCode: session.RobotCode, ConversationID: session.ConversationID,
	})
	if err != nil {
		return err
	}
	if len(list) >= sessions.MaxSchedules {
		return sessions.ErrConversationSchedules
	}
	here := 0
	for _, one := range list {
		if one.CreatedBy == by {
			here++
		}
	}
	if here >= sessions.LeftSchedules && sessions.MaxSchedules-len(list) <= sessions.LeftSchedules {
		return sessions.ErrLeftSchedules
	}
	theirs, err := s.db.Q.SchedulesOfPerson(ctx, tx, &dbsqlc.SchedulesOfPersonParams{
		CreatedBy: by, RobotSessions: pg.SessionPrefix(session.RobotCode),
	})
	if err == nil && theirs >= sessions.MaxPersonSchedules {
		err = sessions.ErrPersonSchedules
	}
	return err
}

// ActiveSchedules implements sessions.Schedules.
func (s *Store) ActiveSchedules(ctx context.Context, key sessions.Key) ([]sessions.Schedule, error) {
	robot, conversation := key.Conversation()
	rows, err := s.db.Q.SchedulesOfConversation(ctx, s.db.Pool, &dbsqlc.SchedulesOfConversationParams{
		SessionKey: string(key), RobotCode: robot, ConversationID: conversation,
	})
	if err != nil {
		return nil, fmt.Errorf("listing schedules: %w", err)
	}
	return all(rows), nil
}

// Schedule implements sessions.Schedules.
func (s *Store) Schedule(ctx context.Context, key sessions.Key, id int64) (sessions.Schedule, error) {
	robot, conversation := key.Conversation()
	row, err := s.db.Q.ScheduleFind(ctx, s.db.Pool, &dbsqlc.ScheduleFindParams{
		SessionKey: string(key), RobotCode: robot, ConversationID: conversation, ID: id,
	})
	if err != nil {
		return sessions.Schedule{}, fmt.Errorf("reading schedule %d: %w", id, pg.AsNotFound(err))
	}
	return convert.Schedule(&row), nil
}

// ScheduleOfOrigin implements sessions.Schedules.
func (s *Store) ScheduleOfOrigin(ctx context.Context, key sessions.Key, origin string) (sessions.Schedule, error) {
	row, err := s.db.Q.ScheduleOfOrigin(ctx, s.db.Pool, &dbsqlc.ScheduleOfOriginParams{SessionKey: key, Origin: pg.Clean(origin)})
	if err != nil {
		return sessions.Schedule{}, fmt.Errorf("reading the schedule of a message: %w", pg.AsNotFound(err))
	}
	return convert.Schedule(&row), nil
}

// CancelSchedule implements sessions.Schedules.
func (s *Store) CancelSchedule(ctx context.Context, key sessions.Key, id int64) (sessions.Schedule, error) {
	row, err := s.db.Q.ScheduleCancel(ctx, s.db.Pool, &dbsqlc.ScheduleCancelParams{SessionKey: key, ID: id})
	if err != nil {
		return sessions.Schedule{}, fmt.Errorf("cancelling schedule %d: %w", id, pg.AsNotFound(err))
	}
	return convert.Schedule(&row), nil
}

// MoveSchedule implements sessions.Schedules.
func (s *Store) MoveSchedule(ctx context.Context, l sessions.Lease, moved sessions.Schedule, spec string, due time.Time) (sessions.Schedule, error) {
	var row dbsqlc.Schedule
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) (err error) {
		row, err = s.db.Q.ScheduleMove(ctx, tx, &dbsqlc.ScheduleMoveParams{SessionKey: moved.Key, ID: moved.ID, Spec: pg.Clean(spec), DueAt: due})
		return err
	})
	if err != nil {
		return sessions.Schedule{}, fmt.Errorf("moving schedule %d: %w", moved.ID, pg.AsNotFound(err))
	}
	return convert.Schedule(&row), nil
}

// OutstandingSchedules implements sessions.Schedules.
func (s *Store) OutstandingSchedules(
	ctx context.Context, robot sessions.RobotCode, by sessions.UserID, until time.Time,
) ([]sessions.OutstandingSchedules, error) {
	rows, err := s.db.Q.SchedulesOutstanding(ctx, s.db.Pool, &dbsqlc.SchedulesOutstandingParams{
		RobotSessions: pg.SessionPrefix(robot), CreatedBy: by, Until: until, MarginSeconds: sessions.WebhookMargin.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("counting the schedules of the month: %w", err)
	}
	list := make([]sessions.OutstandingSchedules, len(rows))
	for i, row := range rows {
		list[i] = sessions.OutstandingSchedules{Spec: row.Times, DueAt: row.DueAt, All: int(row.Total), Own: int(row.Own)}
	}
	return list, nil
}

// LoseSchedule implements sessions.Schedules.
func (s *Store) LoseSchedule(ctx context.Context, key sessions.Key, id int64, most int) (bool, error) {
	ended, err := s.db.Q.ScheduleLose(ctx, s.db.Pool, &dbsqlc.ScheduleLoseParams{SessionKey: key, ID: id, Most: most, At: s.db.Clock.Now()})
	if err != nil {
		return false, fmt.Errorf("counting a lost message of schedule %d: %w", id, pg.AsNotFound(err))
	}
	return ended, nil
}

// ReachSchedule implements sessions.Schedules.
func (s *Store) ReachSchedule(ctx context.Context, key sessions.Key, id int64) error {
	if err := s.db.Q.ScheduleArrive(ctx, s.db.Pool, &dbsqlc.ScheduleArriveParams{SessionKey: key, ID: id}); err != nil {
		return fmt.Errorf("noting that a message of schedule %d arrived: %w", id, err)
	}
	return nil
}

// DueSchedules implements sessions.Schedules.
func (s *Store) DueSchedules(ctx context.Context, after sessions.Schedule, limit int) ([]sessions.Schedule, error) {
	rows, err := s.db.Q.SchedulesDue(ctx, s.db.Pool, &dbsqlc.SchedulesDueParams{
		AfterAt: after.DueAt, AfterKey: string(after.Key), AfterID: after.ID, MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing due schedules: %w", err)
	}
	return all(rows), nil
}

// FireSchedule implements sessions.Schedules. It locks the session's row first, as erasures do.
func (s *Store) FireSchedule(
	ctx context.Context, owner sessions.ReplicaID, due sessions.Schedule, next time.Time, m sessions.Message,
) (a sessions.Accepted, err error) {
	err = s.db.WithSession(ctx, due.Key, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		if err := s.advance(ctx, tx, due, next); err != nil {
			return err
		}
		a, err = s.inbox.AcceptIn(ctx, tx, owner, due.Key, m)
		return err
	})
	if err != nil {
		return sessions.Accepted{}, fmt.Errorf("storing the message of a schedule: %w", pg.AsRefused(err))
	}
	return a, nil
}

// PostponeSchedule implements sessions.Schedules.
func (s *Store) PostponeSchedule(ctx context.Context, due sessions.Schedule, until time.Time) error {
	if err := s.advance(ctx, s.db.Pool, due, until); err != nil {
		return fmt.Errorf("postponing a schedule: %w", err)
	}
	return nil
}

// RefuseSchedule implements sessions.Schedules.
func (s *Store) RefuseSchedule(ctx context.Context, due sessions.Schedule) error {
	n, err := s.db.Q.ScheduleRefuse(ctx, s.db.Pool, &dbsqlc.ScheduleRefuseParams{SessionKey: due.Key, ID: due.ID, DueAt: due.DueAt})
	if err := pg.Require(n, err, sessions.ErrConflict); err != nil {
		return fmt.Errorf("ending a schedule: %w", err)
	}
	return nil
}

func (s *Store) advance(ctx context.Context, db dbsqlc.DBTX, due sessions.Schedule, next time.Time) error {
	n, err := s.db.Q.ScheduleAdvance(ctx, db, &dbsqlc.ScheduleAdvanceParams{
		SessionKey: due.Key, ID: due.ID, DueAt: due.DueAt, NextAt: pg.OrNil(next), At: time.Now(),
	})
	return pg.Require(n, err, sessions.ErrConflict)
}

func all(rows []dbsqlc.Schedule) []sessions.Schedule {
	list := make([]sessions.Schedule, len(rows))
	for i := range rows {
		list[i] = convert.Schedule(&rows[i])
	}
	return list
}
