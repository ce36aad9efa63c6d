package conversation_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The server may die under each step of accepting a message. A message that was stored by then is answered: by the sender's next
// delivery at the latest it is in one row, and the sweep finds it without a delivery.
func TestDeathWhileAccepting(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"a new session":       "DELETE FROM dingtalk_sessions",
		"a free lease":        "UPDATE dingtalk_sessions SET lease_owner = NULL",
		"a stale lease":       "UPDATE dingtalk_sessions SET lease_owner = 'dead'",
		"a lease of its own":  "UPDATE dingtalk_sessions SET lease_owner = 'a'",
		"another title":       "UPDATE dingtalk_sessions SET title = 'old'",
		"a private chat once": "UPDATE dingtalk_sessions SET conversation_type = '1'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := sqltest.URL(t)
			other, pool := storetest.Open(t, url)
			k := &storetest.Killer{Pool: pool}
			s := storetest.OpenTraced(t, url, 1, k)
			storetest.Must[time.Time](t)(other.Leases.Beat(t.Context(), "a"))
			key := sessions.NewKey(storetest.Robot, "cid", "")
			m := sessions.Message{
				RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ConversationTitle: "Team",
				SenderID: "u", StaffID: "u", EncryptedID: "$:u", ID: "second", Text: "hi",
			}
			fresh := func() {
				t.Helper()
				storetest.Execute(t, pool, "TRUNCATE dingtalk_sessions, dingtalk_session_events, sender_ids")
				if name != "a new session" {
					before := m
					before.ID = "first"
					storetest.Must[sessions.Accepted](t)(other.Inbox.Accept(t.Context(), "a", key, before))
					answerAll(t, other, key)
					storetest.Execute(t, pool, "DELETE FROM sender_ids")
				}
				storetest.Execute(t, pool, prepare)
			}
			deaths := 0
			for n := 1; ; n++ {
				fresh()
				k.Left, k.Seen = n, nil
				_, err := s.Inbox.Accept(t.Context(), "a", key, m)
				if k.Err != nil {
					t.Fatal(k.Err)
				}
				if k.Left > 0 {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				deaths++
				if err == nil {
					t.Errorf("the server dead under %q, the message was acknowledged", k.Seen[n-1])
				}
				stored := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE msg_id = 'second'")
				if n == 1 && stored != 0 || n > 1 && stored != 1 {
					t.Errorf("the server dead under step %d, the message is in %d rows", n, stored)
				}
				if stored > 0 { // no delivery comes again
					storetest.Must[[]sessions.Key](t)(other.Inbox.Revive(t.Context(), nil))
					if waiting := storetest.Must[[]sessions.Key](t)(other.Inbox.Waiting(t.Context(), "a", 10)); !slices.Equal(waiting, []sessions.Key{key}) {
						t.Errorf("waiting are %v", waiting)
					}
					if n := answerAll(t, other, key); n != 1 {
						t.Errorf("%d messages were answered, want the one that was stored", n)
					}
				}
				a := storetest.Must[sessions.Accepted](t)(other.Inbox.Accept(t.Context(), "a", key, m))
				if a.New == (stored > 0) || a.EventID == 0 {
					t.Errorf("after %d rows the next delivery gave %+v", stored, a)
				}
				if n := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE msg_id = 'second'"); n != 1 {
					t.Errorf("after the next delivery the message is in %d rows", n)
				}

				fresh() // with patience
				k.Left = n
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				a = storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(ctx, "a", key, m))
				stop()
				if !a.New || a.Lease.Owner != "a" || a.Lease.Term == 0 {
					t.Errorf("accepting through the death at step %d gave %+v", n, a)
				}
				if n := storetest.Number(t, pool, "SELECT count(*) FROM sender_ids"); n != 1 {
					t.Errorf("%d pairs of ids are known", n)
				}
			}
			if want := 2; deaths != want {
				t.Errorf("accepting has %d steps, want %d", deaths, want)
			}
		})
	}
}

// answerAll answers what waits in a session, as replica a, and counts it.
func answerAll(t *testing.T, s *sql.Store, key sessions.Key) int {
	t.Helper()
	l := storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), key, "a"))
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), l, 10))
	turn := sessions.TurnResult{ViewVersion: v.Session.ViewVersion, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "hello", Tokens: 1}}}
	for _, e := range v.Pending {
		turn.Taken, turn.TakenTokens = append(turn.Taken, e.ID), append(turn.TakenTokens, 1)
	}
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), l, turn))
	return len(v.Pending)
}

// A plain message costs one pipeline, which takes no lock of the session's row.
func TestPlainMessageIsOnePipeline(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := storetest.Open(t, url)
	k := &storetest.Killer{Pool: pool}
	s := storetest.OpenTraced(t, url, 1, k)
	storetest.Must[time.Time](t)(s.Leases.Beat(t.Context(), "a"))
	key := sessions.NewKey(storetest.Robot, "cid", "")
	m := sessions.Message{
		RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ConversationTitle: "Team",
		SenderID: "u", StaffID: "u", EncryptedID: "$:u", ID: "first", Text: "hi",
	}
	among := []sessions.Key{key, key + "/u", key + "/$:u"}
	storetest.Must[sessions.Accepted](t)(s.Inbox.AcceptHere(t.Context(), "a", key, m, among))
	tx := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM dingtalk_sessions FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	k.Seen, m.ID = nil, "second"
	a := storetest.Must[sessions.Accepted](t)(s.Inbox.AcceptHere(t.Context(), "a", key, m, among))
	if len(k.Seen) != 1 || !a.New || a.Lease.Owner != "a" {
		t.Errorf("accepting gave %+v, and sent %q", a, k.Seen)
	}
}

// A delivery that waits for the deletion of its message does not bring it back.
func TestRedeliveredDuringADeletion(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	key := sessions.NewKey(storetest.Robot, "cid", "")
	m := sessions.Message{RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, SenderID: "u", ID: "m", Text: "hi"}
	storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", key, m))
	tx := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
	for statement, args := range map[string][]any{
		"DELETE FROM dingtalk_session_events":                nil,
		"INSERT INTO deleted_messages (message) VALUES ($1)": {pg.DeletionMark(key, "m")},
	} {
		if _, err := tx.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan sessions.Accepted, 1)
	go func() {
		a, err := s.Inbox.Accept(t.Context(), "a", key, m)
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	storetest.AwaitBlocked(t, pool)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.New || a.EventID != 0 {
		t.Errorf("the deleted message was accepted as %+v", a)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events"); n != 0 {
		t.Errorf("%d rows of the deleted message are back", n)
	}
}

// A lease whose session is in use stays, and delays no other.
func TestRestLeavesLockedSessions(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	one, two := storetest.NewChat(t, s, "one", "u", false), storetest.NewChat(t, s, "two", "u", false)
	keys := []sessions.Key{one.Reader.Key, two.Reader.Key}
	tx := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM dingtalk_sessions WHERE session_key = $1 FOR UPDATE", one.Reader.Key); err != nil {
		t.Fatal(err)
	}
	if gone := storetest.Must[[]sessions.Key](t)(s.Leases.Rest(t.Context(), "a", keys, 0, 0)); !slices.Equal(gone, keys[1:]) {
		t.Errorf("%v rest, want the session that is not locked", gone)
	}
}

// Heartbeats of the dead go a day later.
func TestHeartbeatsOfTheDeadExpire(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Must[time.Time](t)(s.Leases.Beat(t.Context(), "a"))
	storetest.Execute(t, pool, "INSERT INTO replicas (id, heartbeat_at) VALUES ('old', now() - interval '25 hours'), ('dead', now() - interval '23 hours')")
	storetest.Must[int](t)(s.FactUpkeep.DeleteExpired(t.Context()))
	if left := storetest.Collect(t, pool, "SELECT id FROM replicas ORDER BY id", pgx.RowTo[string]); !slices.Equal(left, []string{"a", "dead"}) {
		t.Errorf("heartbeats of %v are left", left)
	}
}
