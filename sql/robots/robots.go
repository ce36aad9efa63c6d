// Package robots keeps the robots of an installation, and counts the work that a former one leaves.
package robots

import (
	"context"
	"fmt"
	"net/url"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store keeps the robots of a database.
type Store struct{ db *pg.DB }

// New returns the robots of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// SeeRobot records that a process with a robot started, and ends the pauses of the robot's replies.
func (s *Store) SeeRobot(ctx context.Context, r sessions.Robot) error {
	if err := s.db.Q.RobotSee(ctx, s.db.Pool, &dbsqlc.RobotSeeParams{RobotCode: r.Code, Name: pg.Clean(r.Name)}); err != nil {
		return fmt.Errorf("recording robot %s: %w", r.Code, err)
	}
	if err := s.db.Q.RobotResume(ctx, s.db.Pool, url.PathEscape(string(r.Code))); err != nil {
		return fmt.Errorf("resuming the replies of robot %s: %w", r.Code, err)
	}
	return nil
}

// KnownRobots lists the robots of the installation, former ones too, by their codes.
func (s *Store) KnownRobots(ctx context.Context) ([]sessions.Robot, error) {
	rows, err := s.db.Q.RobotsKnown(ctx, s.db.Pool)
	if err != nil {
		return nil, fmt.Errorf("listing robots: %w", err)
	}
	all := make([]sessions.Robot, len(rows))
	for i, r := range rows {
		all[i] = sessions.Robot{Code: r.RobotCode, Name: r.Name, StartedAt: r.StartedAt}
	}
	return all, nil
}

// LeftBy counts the sessions of a robot, and their open work.
func (s *Store) LeftBy(ctx context.Context, code sessions.RobotCode) (sessions.RobotWork, error) {
	r, err := s.db.Q.RobotLeft(ctx, s.db.Pool, url.PathEscape(string(code)))
	if err != nil {
		return sessions.RobotWork{}, fmt.Errorf("counting the work of robot %s: %w", code, err)
	}
	return sessions.RobotWork{
		Sessions: r.Sessions, Messages: r.Messages, Replies: r.Replies, Cards: r.Cards, Schedules: r.Schedules, Approvals: r.Approvals,
	}, nil
}
