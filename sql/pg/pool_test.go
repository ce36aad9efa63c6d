package pg_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// fail has the next writes to a table fail with a code, n of them.
func fail(t *testing.T, pool *pgxpool.Pool, table, code string, n int) {
	t.Helper()
	storetest.Execute(t, pool, fmt.Sprintf(`
		CREATE SEQUENCE IF NOT EXISTS failures;
		CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('failures') <= %d THEN RAISE EXCEPTION 'as the test wants it' USING ERRCODE = '%s'; END IF;
			RETURN NEW;
		END $$;
		CREATE OR REPLACE TRIGGER fail BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION fail();
		SELECT setval('failures', 1, false)`, n, code, table))
}

// A clash of transactions reaches no caller: single statements and transactions are repeated, and once.
func TestSerializationFailuresAreRetried(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	draft := memory.Draft{Scope: memory.ScopeSession, ScopeID: string(c.Reader.Key), Content: "Orion ships on Friday"}
	for _, code := range []string{"40001", "40P01"} {
		fail(t, pool, "dingtalk_session_events", code, 3)
		c.Say("u", "hello again")
		fail(t, pool, "memories", code, 3)
		draft.Content = "Orion ships under the code " + code
		if r, err := s.Facts.Save(t.Context(), c.Lease, []memory.Draft{draft}); err != nil || len(r.Saved) != 1 {
			t.Errorf("%s: saving gave %+v (%v), want one row", code, r, err)
		}
	}
	fail(t, pool, "memories", "40001", 1000)
	draft.Content = "Orion ships never"
	if _, err := s.Facts.Save(t.Context(), c.Lease, []memory.Draft{draft}); err == nil || !strings.Contains(err.Error(), "40001") {
		t.Errorf("what clashes for ever gave %v, want the clash", err)
	}
	if v, err := s.Sessions.Session(t.Context(), c.Reader.Key); err != nil || v.LastSeq != 6 {
		t.Errorf("the last place is %d (%v), want 6: three turns, each committed once", v.LastSeq, err)
	}
}

// On a server with serializable transactions, concurrent turns clash, and all of them succeed.
func TestSerializable(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	s, pool := storetest.Open(t, address)
	storetest.Execute(t, pool, "ALTER DATABASE "+pool.Config().ConnConfig.Database+" SET default_transaction_isolation = serializable")
	s.Close()
	s, _ = storetest.Open(t, address)
	const chats, rounds = 8, 5
	var wg sync.WaitGroup
	for i := range chats {
		c := storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprint("cid", i)), "u", false)
		wg.Go(func() {
			for n := range rounds {
				a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
					RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation, ID: sessions.MessageID(fmt.Sprint("m", n)), Text: "hi",
				})
				if err != nil {
					t.Error(err)
					return
				}
				v, err := s.Turns.Begin(t.Context(), a.Lease, 10)
				if err != nil || len(v.Pending) != 1 {
					t.Errorf("a turn began with %d messages: %v", len(v.Pending), err)
					return
				}
				if _, err := s.Turns.Commit(t.Context(), a.Lease, sessions.TurnResult{
					Taken: []int64{a.EventID}, TakenTokens: []int{1}, Reply: &sessions.Reply{Text: "ok"},
					Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok", Tokens: 1}},
				}); err != nil {
					t.Error(err)
				}
			}
			if v, err := s.Sessions.Session(t.Context(), c.Reader.Key); err != nil || v.LastSeq != 2+2*rounds {
				t.Errorf("the last place is %d (%v), want %d", v.LastSeq, err, 2+2*rounds)
			}
		})
	}
	wg.Wait()
}

// A server that takes no writes is as good as none, and is left for one that does: connections made to it are not kept.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	s, pool := storetest.Open(t, address)
	c := storetest.NewChat(t, s, "cid", "u", false)
	name := pool.Config().ConnConfig.Database
	storetest.Execute(t, pool, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	storetest.Execute(t, pool, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	var err error
	for range 5 { // those that were cut say so first
		_, err = s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "m", Text: "hi"})
	}
	if err == nil || !pg.Unavailable(err) {
		t.Errorf("a message for a server that takes no writes: %v, want one that says to wait", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, pg.ErrReadOnly) || !pg.Unavailable(err) {
		t.Errorf("a server that takes no writes counts as there: %v", err)
	}
	if other, err := sql.Open(t.Context(), sql.Options{URL: address}); err == nil || !pg.Unavailable(err) {
		t.Errorf("a store opened where nothing can be stored: %v", err)
		if err == nil {
			other.Close()
		}
	}
	storetest.Execute(t, pool, "BEGIN READ WRITE; ALTER DATABASE "+name+" RESET default_transaction_read_only; COMMIT")
	_ = s.Ping(t.Context()) // the remaining connections report the loss
	if _, err = s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "m", Text: "hi"}); err != nil {
		t.Errorf("the server takes writes again, but: %v", err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("the server takes writes again, but: %v", err)
	}
}

// The host that takes writes is chosen from several, without a setting.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	standby, primary := sqltest.URL(t), sqltest.URL(t)
	_, pool := storetest.Open(t, standby)
	storetest.Execute(t, pool, "ALTER DATABASE "+pool.Config().ConnConfig.Database+" SET default_transaction_read_only = on")
	through := sqltest.Pooler(t, primary).Through // another host and port for the same server
	a, err := url.Parse(through(standby))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sql.Open(t.Context(), sql.Options{URL: through(standby), Pooler: true})
	if err == nil {
		s.Close()
		t.Error("a server that takes no writes was good enough")
	}
	a.Host = "127.0.0.1:1," + a.Host
	a.Path = through(primary)[strings.LastIndex(through(primary), "/"):strings.Index(through(primary), "?")]
	if s, err = sql.Open(t.Context(), sql.Options{URL: a.String(), Pooler: true}); err != nil {
		t.Fatalf("the second host takes writes, but: %v", err)
	}
	s.Close()
}

// A pooler that is not configured causes errors of prepared statements, which name the way out.
func TestUnconfiguredPoolerIsReported(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	through := sqltest.Pooler(t, address).Through(address)
	s, err := sql.Open(t.Context(), sql.Options{URL: through, MaxConns: 4})
	if err == nil {
		defer s.Close()
		// One after the other they get the same connection, and they name their statements alike.
		err = s.Ping(t.Context())
		second, openErr := sql.Open(t.Context(), sql.Options{URL: through, MaxConns: 4})
		if err = cmp.Or(err, openErr); openErr == nil {
			defer second.Close()
			err = cmp.Or(err, second.Ping(t.Context()))
		}
	}
	for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); { // sooner or later two of them meet on one connection
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() { errs <- s.Ping(t.Context()) }()
		}
		for range cap(errs) {
			err = cmp.Or(err, <-errs)
		}
	}
	if err == nil || !strings.Contains(err.Error(), `database.pooler must be "transaction"`) {
		t.Errorf("behind a pooler that was not configured: %v", err)
	}
}
