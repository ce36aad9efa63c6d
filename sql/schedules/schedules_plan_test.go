package schedules_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

var plannedRows = regexp.MustCompile(`rows=(\d+)`)

// Among 100,000 reminders, the due ones are a range of an index, and those of a conversation are rows of its sessions.
func TestSchedulePlans(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	for _, statement := range []string{
		`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type)
		 SELECT 'r/c' || i, 'r', 'c' || i, '2' FROM generate_series(0, 4999) i`,
		`INSERT INTO schedules (session_key, id, kind, state, due_at, spec, text, created_by, creator, origin, settled_at)
		 SELECT 'r/c' || i % 5000, i / 5000 + 1, 'remind', CASE WHEN i % 4 = 0 THEN 'done' ELSE 'active' END,
		     now() + (i - 10) * interval '1 minute', 'spec', 'text', 'u' || i % 9000, '{}', 'o' || i, CASE WHEN i % 4 = 0 THEN now() END
		 FROM generate_series(0, 99999) i`,
		`ANALYZE`,
	} {
		storetest.Execute(t, pool, statement)
	}
	q, p := dbsqlc.New(), storetest.RowPlanner{Planner: &storetest.Planner{Pool: pool}}
	for name, c := range map[string]struct {
		run   func() error
		index string
	}{
		"due": {func() error {
			_, err := q.SchedulesDue(t.Context(), p, &dbsqlc.SchedulesDueParams{MaxRows: 100})
			return err
		}, "schedules_due"},
		"due, a further page": {func() error {
			_, err := q.SchedulesDue(t.Context(), p, &dbsqlc.SchedulesDueParams{AfterAt: time.Now().Add(-5 * time.Minute), AfterKey: "r/c7", AfterID: 1, MaxRows: 100})
			return err
		}, "schedules_due"},
		"of a conversation": {func() error {
			_, err := q.SchedulesOfConversation(t.Context(), p, &dbsqlc.SchedulesOfConversationParams{SessionKey: "r/c7", RobotCode: "r", ConversationID: "c7"})
			return err
		}, "sessions_of_conversation"},
		"one of a conversation": {func() error {
			_, err := q.ScheduleFind(t.Context(), p, &dbsqlc.ScheduleFindParams{SessionKey: "r/c7", RobotCode: "r", ConversationID: "c7", ID: 1})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		}, "sessions_of_conversation"},
	} {
		p.Plan = ""
		if err := c.run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.Contains(p.Plan, c.index) || strings.Contains(p.Plan, "Seq Scan on schedules") || strings.Contains(p.Plan, "Seq Scan on dingtalk_sessions") {
			t.Errorf("%s: the index %s is not used alone:\n%s", name, c.index, p.Plan)
		}
		for _, line := range strings.Split(p.Plan, "\n") {
			if n, err := strconv.Atoi(append(plannedRows.FindStringSubmatch(line), "", "0")[1]); err == nil && n > 1000 {
				t.Errorf("%s: a step reads %d rows:\n%s", name, n, p.Plan)
			}
		}
	}
}
