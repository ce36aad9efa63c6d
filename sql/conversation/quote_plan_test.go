package conversation_test

import (
	"strings"
	"testing"
	"time"

	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A quote of an answer is found among the replies of its time.
func TestPlanOfAQuotedAnswer(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, storetest.FillLog...)
	p, at := &storetest.Planner{Pool: pool}, time.Now().Add(-time.Hour)
	if _, err := dbsqlc.New().QuotedAnswer(t.Context(), p, &dbsqlc.QuotedAnswerParams{
		SessionKey: "robot/s7", Oldest: at.Add(-time.Minute), Earliest: at, Latest: at.Add(time.Minute),
	}); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{"outbox_settled_by_time", "outbox_open", "events_at_time"} {
		if !strings.Contains(p.Plan, index) {
			t.Errorf("%s is not read:\n%s", index, p.Plan)
		}
	}
}
