package conversation_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// deletions remove a private chat, each in its way.
var deletions = map[string]func(*testing.T, *sql.Store, *storetest.Chat){
	"by an operator": func(t *testing.T, s *sql.Store, c *storetest.Chat) {
		t.Helper()
		storetest.Must[sessions.Deleted](t)(s.Erasure.Delete(t.Context(), c.Reader.Key))
	},
	"by the person": func(t *testing.T, s *sql.Store, _ *storetest.Chat) {
		t.Helper()
		storetest.ForgetZhang(t, s)
	},
}

// A message that is accepted while its session is deleted is answered, or goes with the next deletion. Before its
// transaction ends nothing sees it, and the deletion may see it or not.
func TestAcceptedWhileDeleted(t *testing.T) {
	t.Parallel()
	orders := map[string]func(do func(), begin func() pgx.Tx, trace *storetest.Late){
		"accepted around the deletion": func(do func(), begin func() pgx.Tx, _ *storetest.Late) {
			tx := begin()
			do()
			_ = tx.Commit(t.Context())
		},
		"accepted between its statements": func(do func(), begin func() pgx.Tx, trace *storetest.Late) {
			trace.Do = func() { _ = begin().Commit(t.Context()) }
			do()
		},
	}
	for way, remove := range deletions {
		for order, run := range orders {
			t.Run(way+", "+order, func(t *testing.T) {
				t.Parallel()
				url := sqltest.URL(t)
				_, pool := storetest.Open(t, url)
				trace := &storetest.Late{Word: "-- name: SessionDelete"}
				s := storetest.OpenTraced(t, url, 3, trace)
				dm := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
				storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1'")
				run(func() { remove(t, s, dm) }, func() pgx.Tx {
					return storetest.InsertAccepted(t, pool, dm, storetest.ZhangID, "悄悄说 "+storetest.Secret)
				}, trace)

				if n := storetest.Collect(t, pool, "SELECT count(*) FROM dingtalk_session_events", pgx.RowTo[int64]); n[0] != 1 {
					t.Fatalf("%d events are left, want the one that came meanwhile", n[0])
				}
				if turns := storetest.Must[[]sessions.Key](t)(s.Inbox.Revive(t.Context(), nil)); len(turns) != 0 {
					t.Errorf("%v are in a turn, want none", turns)
				}
				waiting := storetest.Must[[]sessions.Key](t)(s.Inbox.Waiting(t.Context(), "a", 10))
				if len(waiting) != 1 || waiting[0] != dm.Reader.Key {
					t.Fatalf("waiting are %v, want the private chat", waiting)
				}
				l := storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), dm.Reader.Key, "a"))
				v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), l, 5))
				if len(v.Pending) != 1 || v.Session.ConversationType != sessions.Private || l.Term <= dm.Lease.Term {
					t.Errorf("the session is %+v with %d pending messages at term %d", v.Session, len(v.Pending), l.Term)
				}
			})
		}
	}
}
