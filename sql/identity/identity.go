package identity

import (
	"context"
	"slices"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store finds the ids and the nicks of people.
type Store struct{ db *pg.DB }

// New returns the identities of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// StaffIDs lists the staff ids that were seen with an encrypted id. One alone identifies its member.
func (s *Store) StaffIDs(ctx context.Context, robot sessions.RobotCode, encrypted sessions.UserID) ([]sessions.UserID, error) {
	rows, err := s.db.Q.SenderStaff(ctx, s.db.Pool, &dbsqlc.SenderStaffParams{EncryptedID: pg.Clean(string(encrypted)), Robot: pg.Clean(string(robot))})
	return idsOf(rows), err
}

// AddPair stores a pair of ids of one person.
func (s *Store) AddPair(ctx context.Context, robot sessions.RobotCode, encrypted, staff sessions.UserID) error {
	p := s.db.Pool.Pipeline()
	s.db.Q.SenderIDAdd(ctx, p, []*dbsqlc.SenderIDAddParams{{
		EncryptedID: pg.Clean(string(encrypted)), RobotCode: sessions.RobotCode(pg.Clean(string(robot))), StaffID: pg.Clean(string(staff)),
	}})
	return p.Send(ctx)
}

// Linked lists the ids of one kind that were seen with an id of the other kind.
func (s *Store) Linked(ctx context.Context, robot sessions.RobotCode, id sessions.UserID) ([]sessions.UserID, error) {
	rows, err := s.db.Q.SenderIDsLinked(ctx, s.db.Pool, &dbsqlc.SenderIDsLinkedParams{ID: pg.Clean(string(id)), Robot: pg.Clean(string(robot))})
	return idsOf(rows), err
}

func idsOf(texts []string) []sessions.UserID {
	ids := make([]sessions.UserID, len(texts))
	for i, id := range texts {
		ids[i] = sessions.UserID(id)
	}
	return ids
}

// IDs lists every id of some people, since the log has the encrypted one without a staff id. An empty robot stands
// for all.
func (s *Store) IDs(ctx context.Context, db dbsqlc.DBTX, robot sessions.RobotCode, people ...sessions.UserID) ([]string, error) {
	given := []string{}
	for _, p := range people {
		if p != "" {
			given = append(given, string(p))
		}
	}
	if len(given) == 0 {
		return given, nil
	}
	return s.db.Q.PersonIDs(ctx, db, &dbsqlc.PersonIDsParams{People: given, Robot: string(robot)})
}

// ByRobot are ids by the robot that heard them.
type ByRobot map[sessions.RobotCode][]sessions.UserID

// Add adds the id of a person in a session.
func (p ByRobot) Add(heard sessions.Key, id sessions.UserID) {
	robot := pg.RobotOf(heard)
	if !slices.Contains(p[robot], id) {
		p[robot] = append(p[robot], id)
	}
}

// AllIDs lists every id of people.
func (s *Store) AllIDs(ctx context.Context, db dbsqlc.DBTX, p ByRobot) ([]string, error) {
	all := []string{}
	for robot, given := range p {
		ids, err := s.IDs(ctx, db, robot, given...)
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	return all, nil
}

// Merge lists people once each, under their staff id where that is known.
func (s *Store) Merge(ctx context.Context, robot sessions.RobotCode, people []memory.Person) ([]memory.Person, error) {
	var list []memory.Person
	seen := map[sessions.UserID]bool{}
	for _, p := range people {
		if sessions.Outside(p.ID) {
			staff, err := s.StaffIDs(ctx, robot, p.ID)
			if err != nil {
				return nil, err
			}
			if len(staff) == 1 {
				p.ID = staff[0]
			}
		}
		if !seen[p.ID] { // the last seen comes first, with the newest nick
			seen[p.ID], list = true, append(list, p)
		}
	}
	return list, nil
}
