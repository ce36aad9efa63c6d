package sql_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A caller with retries must know whether a retry can help.
func TestPermanentRefusals(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	var long strings.Builder // more than an index takes, and nothing that can be compressed
	for long.Len() < 20_000 {
		long.WriteString(rand.Text())
	}
	key := c.Reader.Key
	for name, try := range map[string]func() error{
		"a message id too long for its index": func() error {
			_, err := s.Inbox.Accept(t.Context(), "a", key, sessions.Message{ID: sessions.MessageID(long.String())})
			return err
		},
		"a session key that is no text": func() error {
			_, err := s.Inbox.Accept(t.Context(), "a", "zero\x00", sessions.Message{ID: "m"})
			return err
		},
		"a role that there is not": func() error {
			_, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{Events: []sessions.Event{{Role: "nobody"}}})
			return err
		},
		"a call id too long for its index": func() error {
			return s.Turns.RecordRun(t.Context(), c.Lease, sessions.ToolRun{Call: sessions.ToolCall{ID: long.String()}})
		},
		"an empty summary": func() error {
			_, err := s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(0, 1, "\x00"))
			return err
		},
		"an audit that is no JSON": func() error {
			return s.Compactions.Log(t.Context(), c.Lease, sessions.LogEntry{Outcome: "failed", Audit: "{"})
		},
		"an outcome that there is not": func() error {
			return s.Compactions.Log(t.Context(), c.Lease, sessions.LogEntry{Outcome: "unheard of"})
		},
		"a memory in no scope": func() error {
			_, err := s.Facts.Save(t.Context(), c.Lease, []memory.Draft{{Scope: "nobody's", Content: "x"}})
			return err
		},
		"a flush into no scope": func() error {
			_, err := s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{Through: 1, Drafts: []memory.Draft{{Scope: "nobody's", Content: "x"}}})
			return err
		},
	} {
		if err := try(); !errors.Is(err, sessions.ErrRefused) {
			t.Errorf("%s: got %v, want ErrRefused", name, err)
		}
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	turn := func(ctx context.Context) error {
		_, err := s.Turns.Commit(ctx, c.Lease, sessions.TurnResult{Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "x"}}})
		return err
	}
	if err := turn(ended); err == nil || errors.Is(err, sessions.ErrRefused) {
		t.Errorf("a commit without time gave %v, want an error that may pass", err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE dingtalk_sessions"); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := turn(short); err == nil || errors.Is(err, sessions.ErrRefused) {
		t.Errorf("a commit behind a lock gave %v, want an error that may pass", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "ALTER TABLE dingtalk_session_events RENAME TO elsewhere")
	if err := turn(t.Context()); err == nil || errors.Is(err, sessions.ErrRefused) {
		t.Errorf("a commit while a table is missing gave %v, want an error that may pass", err)
	}
}
