package conversation_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A turn whose view can't be read counts no attempt, however often it is begun again.
func TestAttemptsOfFailedBegins(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "m", Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, `UPDATE dingtalk_session_events SET tool_calls = '"x"'::jsonb WHERE msg_id IS NULL`)
	if _, err := s.Turns.Begin(t.Context(), a.Lease, 10); err == nil {
		t.Fatal("an unreadable view was read")
	}
	for range 4 {
		if _, err := s.Turns.Begin(t.Context(), a.Lease, 10); err == nil {
			t.Fatal("an unreadable view was read")
		}
	}
	storetest.Execute(t, pool, `UPDATE dingtalk_session_events SET tool_calls = NULL WHERE msg_id IS NULL`)
	v, err := s.Turns.Begin(t.Context(), a.Lease, 10)
	if err != nil || len(v.Pending) != 1 || v.Pending[0].Attempts != 0 {
		t.Errorf("the turn begins with %+v (%v), want the message at its first attempt", v.Pending, err)
	}
}

// A message whose commit succeeded and whose answer was lost is new: no other caller knows of it.
func TestAcceptAnswerLost(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	l := lossy{t: t}
	s, err := sql.Open(t.Context(), sql.Options{URL: l.before(url), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	key := sessions.NewKey("robot", "cid", "")
	accept := func(id string) sessions.Accepted {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		a, err := s.Inbox.Accept(ctx, "a", key, sessions.Message{ID: sessions.MessageID(id), RobotCode: "robot", ConversationID: "cid", Text: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	accept("m1") // prepares the statement
	l.lose.Store(true)
	if a := accept("m2"); l.lose.Load() || !a.New || a.Lease.Owner != "a" {
		t.Errorf("the message whose answer was lost (%v) is accepted as %+v, want a new one", !l.lose.Load(), a)
	}
	if a := accept("m2"); a.New {
		t.Error("the same message counts as new a second time")
	}
}

// A turn whose begin was committed and whose answer was lost is begun again: neither the attempt of the dead process nor
// its own is counted twice.
func TestBeginAnswerLost(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	direct, pool := storetest.Open(t, url)
	l := lossy{t: t}
	s, err := sql.Open(t.Context(), sql.Options{URL: l.before(url), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := storetest.NewChat(t, direct, "cid", "u", false)
	a, err := direct.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "m", Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Must[sessions.View](t)(direct.Turns.Begin(t.Context(), a.Lease, 10))
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour' WHERE id = 'a'") // its process died in the turn
	storetest.Must[time.Time](t)(direct.Leases.Beat(t.Context(), "b"))
	next := storetest.Must[sessions.Lease](t)(direct.Leases.Acquire(t.Context(), c.Reader.Key, "b"))
	for what, begin := range map[string]func(context.Context, sessions.Lease, int) (sessions.View, error){
		"a turn": s.Turns.Begin, "its turn alone": func(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
			return s.Turns.BeginAlone(ctx, l, limit, sessions.Alone{})
		},
	} {
		storetest.Must[sessions.Session](t)(s.Sessions.Session(t.Context(), c.Reader.Key)) // connects
		l.lose.Store(true)
		if _, err := begin(t.Context(), next, 10); err == nil || l.lose.Load() {
			t.Fatalf("%s: the answer was not lost: %v", what, err)
		}
		if v := storetest.Must[sessions.View](t)(begin(t.Context(), next, 10)); len(v.Pending) != 1 || v.Pending[0].Attempts != 1 {
			t.Errorf("%s: begun again with %+v, want one message with a count of 1", what, v.Pending)
		}
	}
}

// lossy is a connection to the server that loses an answer, and itself, on command.
type lossy struct {
	t    *testing.T
	lose atomic.Bool
}

// before listens, and returns the address that leads through it to the database at url.
func (l *lossy) before(url string) string {
	l.t.Helper()
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		l.t.Fatal(err)
	}
	network, place := pgconn.NetworkAddress(conf.Host, conf.Port)
	ear, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = ear.Close() })
	go func() {
		for {
			client, err := ear.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, place)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go l.back(client, server)
		}
	}()
	return "host=127.0.0.1 port=" + strconv.Itoa(ear.Addr().(*net.TCPAddr).Port) + " sslmode=disable user=" + conf.User +
		" password='" + conf.Password + "' dbname=" + conf.Database
}

func (l *lossy) back(client, server net.Conn) {
	defer client.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil || l.lose.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
