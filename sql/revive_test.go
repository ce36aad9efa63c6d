package sql_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
)

// accepting begins to accept a message in a transaction of its own, which the caller commits.
func accepting(t *testing.T, pool *pgxpool.Pool, c *chat, who sessions.UserID, text string) pgx.Tx {
	t.Helper()
	tx := must[pgx.Tx](t)(pool.Begin(t.Context()))
	message := `{"robot_code": "robot", "conversation_id": "` + string(c.reader.Conversation) + `", "conversation_type": "1", "sender_id": "` + string(who) + `"}`
	added := dbsqlc.New().MessageAdd(t.Context(), tx, []*dbsqlc.MessageAddParams{{
		SessionKey: c.reader.Key, MsgID: "slow", Content: text, Message: []byte(message), SenderID: who, SenderNick: zhangNick, SentAt: time.Now(),
	}})
	if id, err := pg.One(added.QueryRow); err != nil || id == 0 {
		t.Fatalf("the message was stored as %d, %v", id, err)
	}
	return tx
}

// deletions remove a private chat, each in its way.
var deletions = map[string]func(*testing.T, *sql.Store, *chat){
	"by an operator": func(t *testing.T, s *sql.Store, c *chat) {
		t.Helper()
		must[sessions.Deleted](t)(s.Delete(t.Context(), c.reader.Key))
	},
	"by the person": func(t *testing.T, s *sql.Store, _ *chat) {
		t.Helper()
		forgetZhang(t, s)
	},
}

// A message that is accepted while its session is deleted is answered, or goes with the next deletion. Before its
// transaction ends nothing sees it, and the deletion may see it or not.
func TestAcceptedWhileDeleted(t *testing.T) {
	t.Parallel()
	orders := map[string]func(do func(), begin func() pgx.Tx, trace *late){
		"accepted around the deletion": func(do func(), begin func() pgx.Tx, _ *late) {
			tx := begin()
			do()
			_ = tx.Commit(t.Context())
		},
		"accepted between its statements": func(do func(), begin func() pgx.Tx, trace *late) {
			trace.do = func() { _ = begin().Commit(t.Context()) }
			do()
		},
	}
	for way, remove := range deletions {
		for order, run := range orders {
			t.Run(way+", "+order, func(t *testing.T) {
				t.Parallel()
				url := sqltest.URL(t)
				_, pool := open(t, url)
				trace := &late{word: "-- name: SessionDelete"}
				s := openTraced(t, url, 3, trace)
				dm := newChat(t, s, "dm", zhangID, true)
				execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1'")
				run(func() { remove(t, s, dm) }, func() pgx.Tx { return accepting(t, pool, dm, zhangID, "悄悄说 "+secret) }, trace)

				if n := collect(t, pool, "SELECT count(*) FROM dingtalk_session_events", pgx.RowTo[int64]); n[0] != 1 {
					t.Fatalf("%d events are left, want the one that came meanwhile", n[0])
				}
				if turns := must[[]sessions.Key](t)(s.Revive(t.Context(), nil)); len(turns) != 0 {
					t.Errorf("%v are in a turn, want none", turns)
				}
				waiting := must[[]sessions.Key](t)(s.Waiting(t.Context(), "a", 10))
				if len(waiting) != 1 || waiting[0] != dm.reader.Key {
					t.Fatalf("waiting are %v, want the private chat", waiting)
				}
				l := must[sessions.Lease](t)(s.Acquire(t.Context(), dm.reader.Key, "a"))
				v := must[sessions.View](t)(s.Begin(t.Context(), l, 5))
				if len(v.Pending) != 1 || v.Session.ConversationType != sessions.Private || l.Term <= dm.lease.Term {
					t.Errorf("the session is %+v with %d pending messages at term %d", v.Session, len(v.Pending), l.Term)
				}
			})
		}
	}
}

// A message without a session goes with its person, also before a sweep saw it.
func TestForgottenWhileAccepted(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	dm := newChat(t, s, "dm", zhangID, true)
	execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1'")
	slow := accepting(t, pool, dm, zhangID, "悄悄说 "+secret)
	forgetZhang(t, s)
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	stays(t, pool, secret, string(zhangID))
	if done := must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: zhangID})); done.Messages != 1 {
		t.Errorf("forgetting again gave %+v, want the message that came meanwhile", done)
	}
	gone(t, pool, secret, string(zhangID))
}
