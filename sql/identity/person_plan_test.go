package identity_test

import (
	"strings"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The names of people, and the sessions where they spoke, are found by indexes of their table and of open messages.
func TestPeoplePlans(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, storetest.FillLog...)
	q, p := dbsqlc.New(), &storetest.Planner{Pool: pool}
	ctx, key := t.Context(), sessions.Key("robot/s7")
	for name, run := range map[string]func() error{
		"where they spoke": func() error {
			_, err := q.PersonLogs(ctx, p, &dbsqlc.PersonLogsParams{People: []string{"p7", "$:p7"}, RobotSessions: "robot/"})
			if err == nil && !strings.Contains(p.Plan, "people_of_person") {
				t.Errorf("the sessions of a person are not found by their index:\n%s", p.Plan)
			}
			return err
		},
		"their last names": func() error {
			_, err := q.PeopleNames(ctx, p, &dbsqlc.PeopleNamesParams{People: []string{"p7", "p8"}})
			return err
		},
		"whether they spoke":    func() error { _, err := q.PeopleSpoke(ctx, p, []string{"p7", "p8"}); return err },
		"whether they are kept": func() error { _, err := q.PeopleKept(ctx, p, []string{"p7", "p8"}); return err },
		"names that the log no longer has": func() error {
			return q.PeopleTrim(ctx, p, &dbsqlc.PeopleTrimParams{SessionKey: key, SeenBefore: time.Now(), SaidBefore: time.Now()})
		},
		"names that the beginning of the log no longer has": func() error {
			begin := time.Now().Add(-190 * time.Minute) // the log has 200 minutes
			err := q.PeopleTrim(ctx, p, &dbsqlc.PeopleTrimParams{SessionKey: "robot/s9", SeenBefore: begin, SaidBefore: begin})
			if err == nil && !strings.Contains(p.Plan, "events_at_time") {
				t.Errorf("more than the beginning of the log is read:\n%s", p.Plan)
			}
			return err
		},
		"the beginning of a log": func() error {
			_, err := q.LogBegin(ctx, p, "robot/s9")
			if !strings.Contains(p.Plan, "events_at_time") {
				t.Errorf("the whole log is read:\n%s", p.Plan)
			}
			_ = err // the planner has no time
			return nil
		},
	} {
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, table := range []string{"dingtalk_session_events", "people", "memories"} {
			if strings.Contains(p.Plan, "Seq Scan on "+table) {
				t.Errorf("%s: all of %s is read:\n%s", name, table, p.Plan)
			}
		}
	}
}
