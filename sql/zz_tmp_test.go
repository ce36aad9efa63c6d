package sql_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql/sqltest"
)

func TestZZTmp(t *testing.T) {
	pool := sqltest.New(t)
	for _, q := range []string{
		`INSERT INTO dingtalk_sessions(session_key,robot_code,conversation_id,conversation_type,last_seq,lease_owner,lease_term,flushed_seq) SELECT 's'||i,'r','c'||i,'2',150,'a',1,140 FROM generate_series(1,2000) i`,
		`INSERT INTO dingtalk_session_events(session_key,seq,role,state,content,msg_id) SELECT 's'||(i%2000+1), i/2000+1,'user','done','hello deploy '||i,'m'||i FROM generate_series(0,299999) i`,
		`ANALYZE`} {
		execute(t, pool, q)
	}
	for _, f := range []string{"140", "0"} {
		execute(t, pool, "UPDATE dingtalk_sessions SET flushed_seq = "+f)
		for _, q := range []string{
			`SELECT s.session_key, coalesce(sum(e.tokens),0) tokens FROM dingtalk_sessions s JOIN dingtalk_session_events e ON e.session_key=s.session_key AND e.seq>s.flushed_seq WHERE s.lease_owner='a' AND s.flushed_seq<s.last_seq GROUP BY s.session_key ORDER BY tokens DESC`,
			`SELECT s.session_key, u.tokens FROM dingtalk_sessions s CROSS JOIN LATERAL (SELECT coalesce(sum(e.tokens),0)::bigint AS tokens FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.seq > s.flushed_seq) u WHERE s.lease_owner='a' AND s.flushed_seq<s.last_seq ORDER BY u.tokens DESC, s.session_key`,
		} {
			rows, err := pool.Query(t.Context(), `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) `+q)
			if err != nil {
				t.Fatal(err)
			}
			ls, _ := pgx.CollectRows(rows, pgx.RowTo[string])
			t.Log("flushed " + f + "\n" + strings.Join(ls, "\n"))
		}
	}
}
