package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// identityStore finds the ids and the nicks of people.
type identityStore struct{ *DB }

func newIdentityStore(db *DB) *identityStore { return &identityStore{db} }

// StaffOf implements sessions.Inbox, with the patience of [Store.insist].
func (s *identityStore) StaffOf(ctx context.Context, robot sessions.RobotCode, encrypted sessions.UserID) (staff sessions.UserID, err error) {
	err = s.insist(ctx, func() (err error) {
		staff, err = s.staffOf(ctx, robot, encrypted)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the staff id of a sender: %w", err)
	}
	return staff, nil
}

func (s *identityStore) staffOf(ctx context.Context, robot sessions.RobotCode, encrypted sessions.UserID) (sessions.UserID, error) {
	staff, err := s.q.SenderStaff(ctx, s.pool, &dbsqlc.SenderStaffParams{EncryptedID: clean(string(encrypted)), Robot: clean(string(robot))})
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return sessions.UserID(staff), err
}

// idsOf lists every id of some people: of messages without a staff id the log has the encrypted one. An empty robot stands
// for all.
func (s *identityStore) idsOf(ctx context.Context, db dbsqlc.DBTX, robot sessions.RobotCode, people ...sessions.UserID) ([]string, error) {
	given := []string{}
	for _, p := range people {
		if p != "" {
			given = append(given, string(p))
		}
	}
	if len(given) == 0 {
		return given, nil
	}
	return s.q.PersonIDs(ctx, db, &dbsqlc.PersonIDsParams{People: given, Robot: string(robot)})
}

// people are ids by the robot that heard them.
type people map[sessions.RobotCode][]sessions.UserID

func (p people) add(heard sessions.Key, id sessions.UserID) {
	robot := robotOf(heard)
	if !slices.Contains(p[robot], id) {
		p[robot] = append(p[robot], id)
	}
}

// everyID lists every id of people.
func (s *identityStore) everyID(ctx context.Context, db dbsqlc.DBTX, p people) ([]string, error) {
	all := []string{}
	for robot, given := range p {
		ids, err := s.idsOf(ctx, db, robot, given...)
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	return all, nil
}

// merged lists people once each, under their staff id where that is known.
func (s *identityStore) merged(ctx context.Context, robot sessions.RobotCode, people []memory.Person) ([]memory.Person, error) {
	var list []memory.Person
	at := map[sessions.UserID]int{}
	for _, p := range people {
		if sessions.Outside(p.ID) {
			staff, err := s.staffOf(ctx, robot, p.ID)
			if err != nil {
				return nil, err
			}
			if staff != "" {
				p.ID = staff
			}
		}
		if i, known := at[p.ID]; known {
			list[i].Messages += p.Messages // the last seen comes first, with the newest nick
			continue
		}
		at[p.ID] = len(list)
		list = append(list, p)
	}
	return list, nil
}
