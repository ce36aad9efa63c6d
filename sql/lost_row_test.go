package sql_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

// loseRow deletes the row of a chat's session.
func loseRow(t *testing.T, pool *pgxpool.Pool, c *chat) {
	t.Helper()
	execute(t, pool, "DELETE FROM dingtalk_sessions WHERE session_key = $1", c.reader.Key)
}

// A session whose row was deleted is flushed from where its receipts end, or its debt begins.
func TestLostRowKeepsTheFlushCursor(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	last := must[sessions.Session](t)(s.Session(t.Context(), c.reader.Key)).LastSeq
	cursor := func(what string, want int64) {
		t.Helper()
		loseRow(t, pool, c)
		must[[]sessions.Key](t)(s.Revive(t.Context(), nil))
		row := must[sessions.Session](t)(s.Session(t.Context(), c.reader.Key))
		if row.FlushedSeq != want || row.LastSeq != last || row.ConversationID != "cid" || row.RobotCode != robot {
			t.Errorf("with %s the session is %+v, want it flushed up to %d of %d", what, row, want, last)
		}
		c.lease = must[sessions.Lease](t)(s.Acquire(t.Context(), c.reader.Key, "a"))
	}
	if err := s.Owe(t.Context(), c.lease, memory.Debt{Through: last, Reason: "busy"}); err != nil {
		t.Fatal(err)
	}
	cursor("a debt alone", 0)
	must[memory.Receipt](t)(s.Flush(t.Context(), c.lease, memory.Flush{From: 0, Through: 1, Trigger: "idle"}))
	cursor("a receipt and the rest of a debt", 1)
	must[memory.Receipt](t)(s.Flush(t.Context(), c.lease, memory.Flush{From: 1, Through: last, Trigger: "idle", Last: true}))
	must[sessions.Accepted](t)(s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{RobotCode: robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "next", SenderID: "u", Text: "hi"}))
	cursor("receipts of all", last)
}

// No message is blamed for a row that is older than its log: the row goes on behind the log, and the next try commits.
func TestRowBehindItsLog(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	execute(t, pool, "UPDATE dingtalk_sessions SET last_seq = 0, base_seq = 0, compacted_seq = 0, flushed_seq = 0")
	must[sessions.Accepted](t)(s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{RobotCode: robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "next", SenderID: "u", Text: "hi"}))
	answer := func() error {
		v := must[sessions.View](t)(s.Begin(t.Context(), c.lease, 5))
		if len(v.Pending) != 1 || v.Suspect != 0 {
			t.Fatalf("pending are %+v with a count of %d", v.Pending, v.Suspect)
		}
		_, err := s.Commit(t.Context(), c.lease, sessions.Turn{
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
	if n := number(t, pool, "SELECT count(*) - count(DISTINCT seq) + max(seq) - (SELECT last_seq FROM dingtalk_sessions) FROM dingtalk_session_events"); n != 0 {
		t.Errorf("places are doubled, or not those of the session: %d", n)
	}
}

// Operators and the background reach a log whose session is missing.
func TestLostRowIsReached(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	must[sessions.Accepted](t)(s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{RobotCode: robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "letter", SenderID: "u", Text: "hi"}))
	execute(t, pool, "UPDATE dingtalk_session_events SET state = 'dead' WHERE state = 'pending'")
	execute(t, pool, "INSERT INTO model_usage (session_key, day, kind, model, prompt_tokens) VALUES ($1, '2026-11-25', 'turn', 'm', 1)", c.reader.Key)
	loseRow(t, pool, c)
	letters := must[[]sessions.Event](t)(s.DeadLetters(t.Context(), nil, 10))
	if key, err := s.RetryDeadLetter(t.Context(), letters[0].ID); err != nil || key != c.reader.Key {
		t.Errorf("a dead letter of %q is queued, %v", key, err)
	}
	must[int](t)(s.DeleteExpired(t.Context()))
	if n := number(t, pool, "SELECT count(*) FROM model_usage"); n == 0 {
		t.Error("the usage of a session with a log was deleted")
	}
	keys := must[[]sessions.Key](t)(s.ExpiredSessions(t.Context(), 0, "", 10))
	if len(keys) != 1 || keys[0] != c.reader.Key {
		t.Errorf("logs with expired events are %v", keys)
	}
	must[int](t)(s.ExpireEvents(t.Context(), c.reader.Key, time.Duration(0)))
	if _, err := s.Session(t.Context(), c.reader.Key); err != nil {
		t.Error(err)
	}
}

// A turn commits beside another restoration of its session's row.
func TestLostRowRestoredTwice(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	other, pool := open(t, url)
	trace := &late{word: "-- name: SessionsMissing"}
	s := openTraced(t, url, 3, trace)
	c := newChat(t, s, "cid", "u", false)
	must[sessions.Accepted](t)(s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{RobotCode: robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "next", SenderID: "u", Text: "hi"}))
	v := must[sessions.View](t)(s.Begin(t.Context(), c.lease, 5))
	loseRow(t, pool, c)
	trace.do = func() {
		must[[]sessions.Key](t)(other.Revive(t.Context(), []sessions.Lease{c.lease}))
	}
	if _, err := s.Commit(t.Context(), c.lease, sessions.Turn{
		Taken: []int64{v.Pending[0].ID}, TakenTokens: []int{1}, ViewVersion: v.Session.ViewVersion,
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "hello", Tokens: 1}},
	}); err != nil {
		t.Error(err)
	}
}
