package facts_test

import (
	"strings"
	"testing"

	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A digest reads its day of a group's log alone.
func TestDigestPlan(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, storetest.FillLog...)
	p, from := &storetest.Planner{Pool: pool}, storetest.Yesterday()
	dbsqlc.New().DigestCount(t.Context(), p, []*dbsqlc.DigestCountParams{{SessionKey: "robot/s7", StartsAt: from.From, EndsAt: from.To}})
	if !strings.Contains(p.Plan, "events_at_time") {
		t.Errorf("more than the day is read of a log:\n%s", p.Plan)
	}
}
