package conversation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/conversation"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The look-up before each message reads indexes only, also on a database without statistics: a plan of the first messages
// is kept for a while.
func TestPlaceOfAMessageReadsNoLog(t *testing.T) {
	t.Parallel()
	p, q := &storetest.Planner{Pool: sqltest.New(t)}, dbsqlc.New()
	wantIndexed := func() {
		t.Helper()
		if !strings.Contains(p.Plan, "dingtalk_session_events_msg_id") || strings.Contains(p.Plan, "Seq Scan on dingtalk_session_events") {
			t.Errorf("the log of all sessions is read:\n%s", p.Plan)
		}
	}
	_ = q.MessagePlace(t.Context(), p, []*dbsqlc.MessagePlaceParams{{SessionKey: "r/c/a", Senders: []string{"a", "b"}, MsgID: "m"}}).Close()
	wantIndexed()
	_ = q.MessageHere(t.Context(), p, []*dbsqlc.MessageHereParams{{SessionKey: "r/c/a", Senders: []string{"a", "b"}, MsgID: "m"}}).Close()
	wantIndexed()
}

// The server soon keeps a plan of each statement of a turn, also with statistics. To plan a statement may take longer than to run it.
func TestPlansOfATurnAreKept(t *testing.T) {
	t.Parallel()
	const turns = 20
	db, run := openTurns(t)
	names := []string{"MessagePlace", "MessageAdd", "MessageKept", "InboxSession", "TurnOpen", "TurnMark", "TurnTail", "TurnSession", "TurnTake", "TurnWhole", "TurnAdd", "TurnUsage", "TurnReply", "OutboxSettle"}
	run(turns)
	before := plansOf(t, db)
	for _, name := range names {
		if c := before[name]; c.generic+c.custom < turns || c.generic == 0 {
			t.Errorf("%s was planned for %d of %d executions", name, c.custom, c.generic+c.custom)
		}
	}
	storetest.Execute(t, db.Pool.Pool, "ANALYZE")
	run(turns)
	after := plansOf(t, db)
	for _, name := range names {
		if n := after[name].custom - before[name].custom; n > 0 {
			t.Errorf("with statistics %s was planned for %d of %d executions", name, n, turns)
		}
	}
	if c := after["PeopleSee"]; c.generic+c.custom != 1 {
		t.Errorf("the same person was noted %d times in %d turns", c.generic+c.custom, 2*turns)
	}
}

type planCounts struct{ generic, custom int64 }

// plansOf counts the plans of the statements of the only connection, by name.
func plansOf(t *testing.T, db *pg.DB) map[string]planCounts {
	t.Helper()
	rows, err := db.Pool.Query(t.Context(), `SELECT split_part(statement, ' ', 3), generic_plans, custom_plans
		FROM pg_prepared_statements WHERE statement LIKE '-- name: %'`)
	if err != nil {
		t.Fatal(err)
	}
	plans := map[string]planCounts{}
	var name string
	var c planCounts
	if _, err := pgx.ForEachRow(rows, []any{&name, &c.generic, &c.custom}, func() error { plans[name] = c; return nil }); err != nil {
		t.Fatal(err)
	}
	return plans
}

// The kept plans of a turn find rows by places, ids and states, also on a database without statistics. By session alone, an index
// of another reader leads through the whole log, or through all replies of a session. The plan of an empty list may have any index,
// and reads nothing: hence the least count.
func TestTurnUsesNoIndexOfOtherReaders(t *testing.T) {
	t.Parallel()
	const turns = 20
	db, run := openTurns(t)
	run(turns)
	storetest.Execute(t, db.Pool.Pool, "SELECT pg_stat_force_next_flush()")
	used := storetest.Collect(t, db.Pool.Pool, `SELECT indexrelname::text FROM pg_stat_user_indexes
		WHERE idx_scan > $1 AND relname IN ('dingtalk_session_events', 'outbox') ORDER BY 1`, pgx.RowTo[string], turns/2)
	for _, name := range []string{"dingtalk_session_events_seq", "outbox_pkey"} {
		if !slices.Contains(used, name) {
			t.Errorf("turns used the indexes %q, want %s", used, name)
		}
	}
	own := []string{
		"dingtalk_session_events_msg_id", "dingtalk_session_events_pkey", "dingtalk_session_events_seq", "events_open",
		"outbox_open", "outbox_pkey",
	}
	if others := slices.DeleteFunc(used, func(name string) bool { return slices.Contains(own, name) }); len(others) > 0 {
		t.Errorf("turns used the indexes %q of other readers", others)
	}
}

// openTurns returns a function that runs turns of one conversation, on a database without statistics, by one connection.
func openTurns(t *testing.T) (_ *pg.DB, run func(turns int)) {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Options{URL: sqltest.URL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := turnStores{
		scopes: conversation.NewScopes(db), inbox: conversation.NewInbox(db, identity.New(db)),
		turns: conversation.NewTurns(db, index.NewLogs(db)), outbox: conversation.NewOutbox(db),
	}
	next := 0
	return db, func(turns int) {
		t.Helper()
		for range turns {
			w.run(t, next)
			next++
		}
	}
}

// turnStores are those on the way of a message.
type turnStores struct {
	scopes *conversation.Scopes
	inbox  *conversation.Inbox
	turns  *conversation.Turns
	outbox *conversation.Outbox
}

// run stores a message, answers it and marks the reply as sent.
func (w turnStores) run(t *testing.T, n int) {
	t.Helper()
	ctx, key := t.Context(), sessions.NewKey("robot", "cid", "")
	m := sessions.Message{RobotCode: "robot", ConversationID: "cid", ConversationType: sessions.Group, ID: sessions.MessageID(fmt.Sprint(n)), SenderID: "a", Text: "a question"}
	among := []sessions.Key{key}
	storetest.Must[sessions.Place](t)(w.scopes.PlaceOf(ctx, m, among))
	a := storetest.Must[sessions.Accepted](t)(w.inbox.AcceptHere(ctx, "replica", key, m, among))
	v := storetest.Must[sessions.View](t)(w.turns.Begin(ctx, a.Lease, 20))
	c := storetest.Must[sessions.Committed](t)(w.turns.Commit(ctx, a.Lease, sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{3}, ViewVersion: v.Session.ViewVersion,
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "an answer", Tokens: 3}},
		Reply:  &sessions.Reply{Text: "an answer"}, Spent: sessions.Spending{Usage: sessions.Usage{Prompt: 100, Completion: 3}, Model: "main"},
	}))
	if err := w.outbox.Settle(ctx, sessions.SendOutcome{Key: key, ID: c.Replies[0].ID, Sent: true, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
}
