package conversation_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"ebb/sessions"
	"ebb/sql/conversation"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A view that is read as far as it is not known is the view of a process that knows nothing, also after changes of shown texts.
func TestKnownTailIsThatOfTheLog(t *testing.T) {
	t.Parallel()
	db, err := pg.Open(t.Context(), pg.Options{URL: sqltest.URL(t), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	turns, inbox := conversation.NewTurns(db, index.NewLogs(db)), conversation.NewInbox(db, identity.New(db))
	key := sessions.NewKey("robot", "cid", "")
	turn := func(n int) sessions.Lease {
		t.Helper()
		m := sessions.Message{RobotCode: "robot", ConversationID: "cid", ConversationType: sessions.Group, ID: sessions.MessageID(fmt.Sprint(n)), SenderID: "a", Text: fmt.Sprint("question ", n)}
		a := storetest.Must[sessions.Accepted](t)(inbox.Accept(t.Context(), "replica", key, m))
		v := storetest.Must[sessions.View](t)(turns.Begin(t.Context(), a.Lease, 20))
		storetest.Must[sessions.Committed](t)(turns.Commit(t.Context(), a.Lease, sessions.TurnResult{
			Taken: []int64{a.EventID}, TakenTokens: []int{3}, ViewVersion: v.Session.ViewVersion,
			Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: fmt.Sprint("answer ", n), Tokens: 3}},
		}))
		return a.Lease
	}
	tail := func(turns *conversation.Turns, l sessions.Lease) []sessions.Event {
		t.Helper()
		return storetest.Must[sessions.View](t)(turns.Begin(t.Context(), l, 0)).Tail
	}
	same := func(when string, l sessions.Lease, want int) {
		t.Helper()
		fresh := tail(conversation.NewTurns(db, index.NewLogs(db)), l)
		if known := tail(turns, l); len(known) != want || !reflect.DeepEqual(known, fresh) {
			t.Errorf("%s the tail is\n%+v, want\n%+v with %d events", when, known, fresh, want)
		}
	}
	var l sessions.Lease
	for n := range 4 {
		l = turn(n)
		same("after a turn", l, 2*n+2)
	}
	shown := tail(turns, l)
	shown[0].Content = "shortened for a request"
	same("after a change of a view in memory", l, 8)
	storetest.Execute(t, db.Pool.Pool, "UPDATE dingtalk_session_events SET shown = 'other words' WHERE seq = 2")
	storetest.Execute(t, db.Pool.Pool, "UPDATE dingtalk_sessions SET view_version = view_version + 1")
	same("after another version", l, 8)
	storetest.Execute(t, db.Pool.Pool, "UPDATE dingtalk_sessions SET view_version = view_version + 1, compacted_seq = 3")
	same("after a compaction", l, 5)
	storetest.Execute(t, db.Pool.Pool, "UPDATE dingtalk_session_events SET content = 'erased' WHERE seq = 5")
	storetest.Execute(t, db.Pool.Pool, "UPDATE dingtalk_sessions SET lease_term = lease_term + 1")
	l.Term++
	same("under another term", l, 5)
	same("after the next turn", turn(9), 7)
}

// A takeover between two statements of a begin loses the lease, whatever was known of the tail: the events behind it are not read.
func TestKnownTailHidesNoTakeover(t *testing.T) {
	t.Parallel()
	db, err := pg.Open(t.Context(), pg.Options{URL: sqltest.URL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := turnStores{
		scopes: conversation.NewScopes(db), inbox: conversation.NewInbox(db, identity.New(db)),
		turns: conversation.NewTurns(db, index.NewLogs(db)), outbox: conversation.NewOutbox(db),
	}
	w.run(t, 0)
	w.run(t, 1) // its begin knows the turn before, and its own events come behind
	storetest.Execute(t, db.Pool.Pool, `CREATE FUNCTION take_over() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		UPDATE dingtalk_sessions SET lease_owner = 'another', lease_term = lease_term + 1; RETURN NEW; END $$`)
	storetest.Execute(t, db.Pool.Pool, `CREATE TRIGGER take_over BEFORE UPDATE OF attempt_term ON dingtalk_session_events FOR EACH ROW EXECUTE FUNCTION take_over()`)
	key := sessions.NewKey("robot", "cid", "")
	a := storetest.Must[sessions.Accepted](t)(w.inbox.Accept(t.Context(), "replica", key, sessions.Message{RobotCode: "robot", ConversationID: "cid", ID: "late", SenderID: "a", Text: "a question"}))
	if v, err := w.turns.Begin(t.Context(), a.Lease, 20); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("the turn begins with %d of %d events, %v", len(v.Tail), v.Session.LastSeq, err)
	}
}

// A turn asks the server for the events since the last one alone.
func TestTurnReadsTheNewEventsAlone(t *testing.T) {
	t.Parallel()
	db, run := openTurns(t)
	run(10)
	storetest.Execute(t, db.Pool.Pool, "SELECT pg_stat_force_next_flush()")
	read := func() int {
		return storetest.Number(t, db.Pool.Pool, "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'dingtalk_session_events'")
	}
	before := read()
	run(10)
	storetest.Execute(t, db.Pool.Pool, "SELECT pg_stat_force_next_flush()")
	if n := read() - before; n > 150 {
		t.Errorf("ten turns read %d rows of the log", n)
	}
}
