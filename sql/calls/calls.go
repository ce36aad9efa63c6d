package calls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/limits"
	"ebb/sql/pg"
)

// Store implements the port calls.Store of bot/dingtalk, which documents its methods.
type Store struct {
	db    *pg.DB
	robot sessions.RobotCode
}

// New returns the counts of a database, of calls without a robot.
func New(db *pg.DB) *Store { return &Store{db: db} }

// ForRobot returns the counts of a robot.
func (s *Store) ForRobot(robot sessions.RobotCode) *Store { return &Store{s.db, robot} }

// OpenCallMonth implements calls.Store.
func (s *Store) OpenCallMonth(ctx context.Context, month string, quota int64) (sessions.CallMonth, error) {
	begun, err := s.db.Q.CallsOpen(ctx, s.db.Pool, &dbsqlc.CallsOpenParams{RobotCode: s.robot, Month: month, Quota: quota})
	if err != nil {
		return sessions.CallMonth{}, fmt.Errorf("beginning the month of calls %s: %w", month, err)
	}
	if begun == 0 {
		if err := s.db.Q.CallsSetQuota(ctx, s.db.Pool, &dbsqlc.CallsSetQuotaParams{RobotCode: s.robot, Month: month, Quota: quota}); err != nil {
			return sessions.CallMonth{}, fmt.Errorf("setting the quota of calls of %s: %w", month, err)
		}
	}
	m, err := s.CallMonth(ctx, month)
	m.First = begun > 0
	return m, err
}

// Now implements calls.Store.
func (s *Store) Now() time.Time { return s.db.Clock.Now() }

// Replicas implements calls.Store.
func (s *Store) Replicas(ctx context.Context) (int, error) {
	n, err := s.db.Q.ReplicasRunning(ctx, s.db.Pool, int(math.Ceil(s.db.TTL.Seconds())))
	if err != nil {
		return 0, fmt.Errorf("counting the replicas: %w", err)
	}
	return n, nil
}

// CallMonth implements calls.Store.
func (s *Store) CallMonth(ctx context.Context, month string) (sessions.CallMonth, error) {
	r, err := s.db.Q.CallsMonth(ctx, s.db.Pool, &dbsqlc.CallsMonthParams{RobotCode: s.robot, Month: month})
	if err != nil {
		return sessions.CallMonth{}, fmt.Errorf("reading the calls of %s: %w", month, pg.AsNotFound(err))
	}
	return sessions.CallMonth{Calls: r.Calls, Reported: r.Level, ExhaustedUntil: pg.OrZero(r.ExhaustedUntil), LowBefore: r.LowBefore}, nil
}

// ReserveCalls implements calls.Store.
func (s *Store) ReserveCalls(ctx context.Context, day string, apis []string, bound int64, now time.Time) (sessions.CallMonth, bool, error) {
	month, p := sessions.MonthOf(day), s.db.Pool.Pipeline()
	s.db.Q.CallsLock(ctx, p, []*dbsqlc.CallsLockParams{{RobotCode: s.robot, Month: month}})
	s.db.Q.CallsCount(ctx, p, []*dbsqlc.CallsCountParams{{RobotCode: s.robot, Month: month, Apis: apis, Bound: bound, Now: now}})
	s.db.Q.CallsCountDay(ctx, p, []*dbsqlc.CallsCountDayParams{{RobotCode: s.robot, Month: month, Day: day, Apis: apis, Bound: bound, Now: now}})
	counted := s.db.Q.CallsReserve(ctx, p, []*dbsqlc.CallsReserveParams{{RobotCode: s.robot, Month: month, Apis: apis, Bound: bound, Now: now}})
	err := p.Send(ctx)
	var r dbsqlc.CallsReserveRow
	if err == nil {
		r, err = pg.One(counted.QueryRow)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return sessions.CallMonth{}, false, nil
	}
	if err != nil {
		return sessions.CallMonth{}, false, fmt.Errorf("counting %d calls of %s: %w", len(apis), day, err)
	}
	return sessions.CallMonth{Calls: r.Calls, Reported: r.Level, ExhaustedUntil: pg.OrZero(r.ExhaustedUntil)}, true, nil
}

// ReturnCall implements calls.Store.
func (s *Store) ReturnCall(ctx context.Context, day, api string) (sessions.CallMonth, error) {
	month, p := sessions.MonthOf(day), s.db.Pool.Pipeline()
	returned := s.db.Q.CallsReturn(ctx, p, []*dbsqlc.CallsReturnParams{{RobotCode: s.robot, Month: month}})
	s.db.Q.CallsUncount(ctx, p, []*dbsqlc.CallsUncountParams{{RobotCode: s.robot, Month: month, Api: api}})
	s.db.Q.CallsUncountDay(ctx, p, []*dbsqlc.CallsUncountDayParams{{RobotCode: s.robot, Day: day, Api: api}})
	err := p.Send(ctx)
	var r dbsqlc.CallsReturnRow
	if err == nil {
		r, err = pg.One(returned.QueryRow)
	}
	if err != nil {
		return sessions.CallMonth{}, fmt.Errorf("returning a call of %s: %w", day, pg.AsNotFound(err))
	}
	return sessions.CallMonth{Calls: r.Calls, Reported: r.Level, ExhaustedUntil: pg.OrZero(r.ExhaustedUntil)}, nil
}

// ReportCallLevel implements calls.Store.
func (s *Store) ReportCallLevel(ctx context.Context, month string, level int) (bool, error) {
	n, err := s.db.Q.CallsReport(ctx, s.db.Pool, &dbsqlc.CallsReportParams{RobotCode: s.robot, Month: month, Level: level})
	if err != nil {
		return false, fmt.Errorf("reporting the level of calls of %s: %w", month, err)
	}
	return n > 0, nil
}

// PersonCalls implements calls.Store.
func (s *Store) PersonCalls(ctx context.Context, month string, person sessions.UserID) (int64, error) {
	subject, err := s.ofPerson(ctx, month, person)
	if err != nil {
		return 0, err
	}
	n, err := s.db.Q.CallsOfPerson(ctx, s.db.Pool, subject)
	if err != nil {
		return 0, fmt.Errorf("reading a person's calls of %s: %w", month, err)
	}
	return n, nil
}

// CountPersonCall implements calls.Store.
func (s *Store) CountPersonCall(ctx context.Context, month string, person sessions.UserID, until time.Time) error {
	subject, err := s.ofPerson(ctx, month, person)
	if err != nil {
		return err
	}
	if err := s.db.Q.CallsCountPerson(ctx, s.db.Pool, &dbsqlc.CallsCountPersonParams{Subject: subject, EndsAt: until}); err != nil {
		return fmt.Errorf("counting a person's call of %s: %w", month, err)
	}
	return nil
}

// The key of a count is a hash, so that it names no person: the count outlives the deletion of their data. The hash has the key of the
// month's last day, which is deleted after that day.
func (s *Store) ofPerson(ctx context.Context, month string, person sessions.UserID) ([]byte, error) {
	first, err := time.Parse("2006-01", month)
	if err != nil {
		return nil, fmt.Errorf("reading the month of a call: %w", err)
	}
	key, err := limits.KeyOf(ctx, s.db, first.AddDate(0, 1, -1))
	if err != nil {
		return nil, err
	}
	return limits.Hash(key, "calls", month, string(s.robot), string(person)), nil
}

// ExhaustCalls implements calls.Store.
func (s *Store) ExhaustCalls(ctx context.Context, month string, until time.Time) (bool, error) {
	p := s.db.Pool.Pipeline()
	locked := s.db.Q.CallsLock(ctx, p, []*dbsqlc.CallsLockParams{{RobotCode: s.robot, Month: month}})
	s.db.Q.CallsExhaust(ctx, p, []*dbsqlc.CallsExhaustParams{{RobotCode: s.robot, Month: month, Until: until}})
	err := p.Send(ctx)
	var before dbsqlc.CallsLockRow
	if err == nil {
		before, err = pg.One(locked.QueryRow)
	}
	if err != nil {
		return false, fmt.Errorf("storing that the calls of %s are exhausted: %w", month, pg.AsNotFound(err))
	}
	return before.ExhaustedUntil == nil, nil
}

// ResumeCalls ends the platform's refusal of a month for all robots, and the pauses of waiting replies. It returns
// [sessions.ErrNotFound] for a month without a call.
func (s *Store) ResumeCalls(ctx context.Context, month string) (sessions.ResumedCalls, error) {
	out := sessions.ResumedCalls{Month: month}
	err := s.db.InTx(ctx, func(tx pgx.Tx) error {
		robots, err := s.db.Q.CallsRobots(ctx, tx, month)
		if err == nil && len(robots) == 0 {
			err = pgx.ErrNoRows
		}
		for _, robot := range robots {
			if err == nil {
				err = s.ForRobot(robot).resume(ctx, tx, month, &out)
			}
		}
		if err != nil {
			return err
		}
		replies, err := s.db.Q.RepliesResume(ctx, tx)
		out.Replies = int(replies)
		return err
	})
	if err != nil {
		return sessions.ResumedCalls{}, fmt.Errorf("resuming the calls of %s: %w", month, pg.AsNotFound(err))
	}
	return out, nil
}

func (s *Store) resume(ctx context.Context, tx pgx.Tx, month string, out *sessions.ResumedCalls) error {
	r, err := pg.One(s.db.Q.CallsLock(ctx, tx, []*dbsqlc.CallsLockParams{{RobotCode: s.robot, Month: month}}).QueryRow)
	if err != nil {
		return err
	}
	if until := pg.OrZero(r.ExhaustedUntil); until.After(out.RefusedUntil) {
		out.RefusedUntil = until
	}
	out.Calls, out.Quota = out.Calls+r.Calls, out.Quota+r.Quota
	return s.db.Q.CallsResume(ctx, tx, &dbsqlc.CallsResumeParams{RobotCode: s.robot, Month: month})
}

// CallCounts lists counts, the newest period first. Each month begins with the row of all APIs. An empty month means
// all; byDay lists days instead.
func (s *Store) CallCounts(ctx context.Context, month string, byDay bool, limit int) ([]sessions.CallCount, error) {
	if byDay {
		rows, err := s.db.Q.CallsDays(ctx, s.db.Pool, &dbsqlc.CallsDaysParams{Month: month, MaxRows: limit})
		if err != nil {
			return nil, fmt.Errorf("listing the calls by day: %w", err)
		}
		out := make([]sessions.CallCount, len(rows))
		for i, r := range rows {
			out[i] = sessions.CallCount{Robot: r.RobotCode, Period: r.Day, API: r.Api, Calls: r.Count}
		}
		return out, nil
	}
	rows, err := s.db.Q.CallsList(ctx, s.db.Pool, &dbsqlc.CallsListParams{Month: month, MaxRows: limit})
	if err != nil {
		return nil, fmt.Errorf("listing the calls by month: %w", err)
	}
	out := make([]sessions.CallCount, len(rows))
	for i, r := range rows {
		out[i] = sessions.CallCount{Robot: r.RobotCode, Period: r.Month, API: r.Api, Calls: r.Count, Quota: r.Quota, RefusedUntil: pg.OrZero(r.ExhaustedUntil)}
	}
	return out, nil
}
