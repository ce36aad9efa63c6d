package identity

import (
	"context"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// LastSeen is the newest name of a person, and the time of the newest message to within an hour.
type LastSeen struct {
	Nick string // empty if no message had one
	At   time.Time
}

// LastSeen reads when and under which name people last spoke, to a robot or to any if empty, and in a group if given. A
// person who never spoke there is missing.
func (s *Store) LastSeen(ctx context.Context, robot sessions.RobotCode, group sessions.Key, people []sessions.UserID) (map[sessions.UserID]LastSeen, error) {
	last := map[sessions.UserID]LastSeen{}
	p := &dbsqlc.PeopleNamesParams{RobotSessions: pg.RobotSessions(robot), GroupKey: string(group)}
	for _, id := range people {
		if id != "" {
			p.People = append(p.People, string(id))
		}
	}
	if len(p.People) == 0 {
		return last, nil
	}
	rows, err := s.namesOf(ctx, p)
	if err != nil {
		return nil, err
	}
	named := map[sessions.UserID]time.Time{}
	for _, r := range rows {
		one := last[r.Person]
		if r.Nick != "" && !r.SeenAt.Before(named[r.Person]) {
			one.Nick, named[r.Person] = r.Nick, r.SeenAt
		}
		if r.SeenAt.After(one.At) {
			one.At = r.SeenAt
		}
		last[r.Person] = one
	}
	return last, nil
}

func (s *Store) namesOf(ctx context.Context, p *dbsqlc.PeopleNamesParams) ([]dbsqlc.PeopleNamesRow, error) {
	if p.RobotSessions != "" || p.GroupKey != "" {
		return s.db.Q.PeopleNames(ctx, s.db.Pool, p)
	}
	rows, err := s.db.Q.PeopleNamesAnywhere(ctx, s.db.Pool, p.People)
	list := make([]dbsqlc.PeopleNamesRow, len(rows))
	for i, r := range rows {
		list[i] = dbsqlc.PeopleNamesRow(r)
	}
	return list, err
}

// Logs lists the sessions where some people spoke, and others with quotes of them, at a robot or at any if empty. Their rows may be
// missing.
func (s *Store) Logs(ctx context.Context, robot sessions.RobotCode, people []string) (spoken, quoted []string, err error) {
	rows, err := s.db.Q.PersonLogs(ctx, s.db.Pool, &dbsqlc.PersonLogsParams{People: people, RobotSessions: pg.RobotSessions(robot)})
	spoken, quoted = []string{}, []string{}
	for _, r := range rows {
		if r.Spoke {
			spoken = append(spoken, string(r.SessionKey))
		} else {
			quoted = append(quoted, string(r.SessionKey))
		}
	}
	return spoken, quoted, err
}
