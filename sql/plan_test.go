package sql_test

import (
	"strings"
	"testing"
	"time"

	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Frequent queries, and those in the seconds of a stop, must not cost more because of a large history.
func TestPlans(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	for _, statement := range []string{
		`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq, flushed_seq, lease_owner, lease_term)
		 SELECT 's' || i, 'r', 'c' || i, '2', 100, 90, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, 1 FROM generate_series(0, 499) i`,
		`INSERT INTO dingtalk_session_events (session_key, seq, role, content, msg_id, tokens)
		 SELECT 's' || i % 500, i / 500 + 1, 'user', 'said ' || i, 'm' || i, 3 FROM generate_series(0, 49999) i`,
		`ANALYZE`,
	} {
		storetest.Execute(t, pool, statement)
	}
	q, p := dbsqlc.New(), &storetest.Planner{Pool: pool}
	for name, tt := range map[string]struct {
		run    func() error
		sorted bool
	}{
		"unflushed sessions": {func() error {
			_, err := q.SessionsUnflushed(t.Context(), p, &dbsqlc.SessionsUnflushedParams{Owner: "a"})
			return err
		}, true},
		"all history": {func() error {
			_, err := q.EventsHistory(t.Context(), p, &dbsqlc.EventsHistoryParams{
				SessionKey: "s7", FromSeq: 1, ThroughSeq: 1 << 40, Until: time.Now(), Seqs: []int64{}, Patterns: []string{}, MaxChars: 10, MaxRows: 20,
			})
			return err
		}, false},
		"the part of a history to compare": {func() error {
			_, err := q.EventsWindow(t.Context(), p, &dbsqlc.EventsWindowParams{
				SessionKey: "s7", FirstSeq: 1, ThroughSeq: 1 << 40, Until: time.Now(), MaxRows: 20, MaxBytes: 1000,
			})
			return err
		}, false},
		"what there is to tell": {func() error {
			_, err := q.EventsSource(t.Context(), p, &dbsqlc.EventsSourceParams{SessionKey: "s7", AfterSeq: 40, ThroughSeq: 60})
			return err
		}, true},
		"bodies that no view needs": {func() error {
			_, err := q.BlobsSweep(t.Context(), p, &dbsqlc.BlobsSweepParams{SessionKey: "s7", AfterSeq: 90})
			return err
		}, false},
		"bodies that a view needs": {func() error {
			return q.BlobsKeep(t.Context(), p, &dbsqlc.BlobsKeepParams{SessionKey: "s7", AfterSeq: 90})
		}, false},
		"showing results otherwise": {func() error {
			return q.EventsShow(t.Context(), p, &dbsqlc.EventsShowParams{
				SessionKey: "s7", Seqs: []int64{95}, Texts: []string{""}, Tokens: []int{1}, BlobIds: []string{""}, Whole: []bool{false},
			})
		}, false},
	} {
		p.Plan = ""
		if err := tt.run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(p.Plan, "Seq Scan on dingtalk_session_events") || !strings.Contains(p.Plan, "dingtalk_session_events_seq") {
			t.Errorf("%s: the log of everybody is read:\n%s", name, p.Plan)
		}
		if got := strings.Contains(p.Plan, "Sort"); got != tt.sorted {
			t.Errorf("%s: sorted is %t, want %t: an ordered list must end with its limit:\n%s", name, got, tt.sorted, p.Plan)
		}
	}
}
