package conversation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// loseRow deletes the row of a chat's session.
func loseRow(t *testing.T, pool *pgxpool.Pool, c *storetest.Chat) {
	t.Helper()
	storetest.Execute(t, pool, "DELETE FROM dingtalk_sessions WHERE session_key = $1", c.Reader.Key)
}

// A session whose row was deleted is flushed from where its receipts end, or its debt begins.
func TestLostRowKeepsTheFlushCursor(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	last := storetest.Must[sessions.Session](t)(s.Sessions.Session(t.Context(), c.Reader.Key)).LastSeq
	cursor := func(what string, want int64) {
		t.Helper()
		loseRow(t, pool, c)
		storetest.Must[[]sessions.Key](t)(s.Inbox.Revive(t.Context(), nil))
		row := storetest.Must[sessions.Session](t)(s.Sessions.Session(t.Context(), c.Reader.Key))
		if row.FlushedSeq != want || row.LastSeq != last || row.ConversationID != "cid" || row.RobotCode != storetest.Robot {
			t.Errorf("with %s the session is %+v, want it flushed up to %d of %d", what, row, want, last)
		}
		c.Lease = storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), c.Reader.Key, "a"))
	}
	if err := s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: last, Reason: "busy"}); err != nil {
		t.Fatal(err)
	}
	cursor("a debt alone", 0)
	storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{From: 0, Through: 1, Trigger: "idle"}))
	cursor("a receipt and the rest of a debt", 1)
	storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{From: 1, Through: last, Trigger: "idle", Last: true}))
	storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "next", SenderID: "u", Text: "hi"}))
	cursor("receipts of all", last)
}

// No message is blamed for a row that is older than its log: the row goes on behind the log, and the next try commits.
func TestRowBehindItsLog(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET last_seq = 0, base_seq = 0, compacted_seq = 0, flushed_seq = 0")
	storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "next", SenderID: "u", Text: "hi"}))
	answer := func() error {
		v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 5))
		if len(v.Pending) != 1 || v.Suspect != 0 {
			t.Fatalf("pending are %+v with a count of %d", v.Pending, v.Suspect)
		}
		_, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
			Taken: []int64{v.Pending[0].ID}, TakenTokens: []int{1}, ViewVersion: v.Session.ViewVersion,
			Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "hello", Tokens: 1}},
		})
		return err
	}
	if err := answer(); !errors.Is(err, sessions.ErrConflict) || errors.Is(err, sessions.ErrRefused) {
		t.Errorf("committing behind the log gave %v", err)
	}
	if err := answer(); err != nil {
		t.Error(err)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) - count(DISTINCT seq) + max(seq) - (SELECT last_seq FROM dingtalk_sessions) FROM dingtalk_session_events"); n != 0 {
		t.Errorf("places are doubled, or not those of the session: %d", n)
	}
}

// Operators and the background reach a log whose session is missing.
func TestLostRowIsReached(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "letter", SenderID: "u", Text: "hi"}))
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET state = 'dead' WHERE state = 'pending'")
	storetest.Execute(t, pool, "INSERT INTO model_usage (session_key, day, kind, model, prompt_tokens) VALUES ($1, '2026-11-25', 'turn', 'm', 1)", c.Reader.Key)
	loseRow(t, pool, c)
	letters := storetest.Must[[]sessions.Event](t)(s.Lists.DeadLetters(t.Context(), nil, 10))
	if key, err := s.Lists.RetryDeadLetter(t.Context(), letters[0].ID); err != nil || key != c.Reader.Key {
		t.Errorf("a dead letter of %q is queued, %v", key, err)
	}
	storetest.Must[int](t)(s.FactUpkeep.DeleteExpired(t.Context()))
	if n := storetest.Number(t, pool, "SELECT count(*) FROM model_usage"); n == 0 {
		t.Error("the usage of a session with a log was deleted")
	}
	keys := storetest.Must[[]sessions.Key](t)(s.Retention.ExpiredSessions(t.Context(), 0, "", 10))
	if len(keys) != 1 || keys[0] != c.Reader.Key {
		t.Errorf("logs with expired events are %v", keys)
	}
	storetest.Must[int](t)(s.Retention.ExpireEvents(t.Context(), c.Reader.Key, time.Duration(0)))
	if _, err := s.Sessions.Session(t.Context(), c.Reader.Key); err != nil {
		t.Error(err)
	}
}

// A turn commits beside another restoration of its session's row.
func TestLostRowRestoredTwice(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	other, pool := storetest.Open(t, url)
	trace := &storetest.Late{Word: "-- name: SessionsMissing"}
	s := storetest.OpenTraced(t, url, 3, trace)
	c := storetest.NewChat(t, s, "cid", "u", false)
	storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "next", SenderID: "u", Text: "hi"}))
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 5))
	loseRow(t, pool, c)
	trace.Do = func() {
		storetest.Must[[]sessions.Key](t)(other.Inbox.Revive(t.Context(), []sessions.Lease{c.Lease}))
	}
	if _, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
		Taken: []int64{v.Pending[0].ID}, TakenTokens: []int{1}, ViewVersion: v.Session.ViewVersion,
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "hello", Tokens: 1}},
	}); err != nil {
		t.Error(err)
	}
}
