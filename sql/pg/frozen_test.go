package pg_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A replica freezes in a transaction that holds a conversation. Within seconds another one has the conversation, stores
// its messages and begins a turn, with and without a pooler between. The next step of the frozen one fails.
func TestFrozenInATransaction(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(*testing.T, string) sql.Options{
		"direct": func(_ *testing.T, url string) sql.Options { return sql.Options{URL: url} },
		"through a pooler": func(t *testing.T, url string) sql.Options {
			t.Helper()
			return sql.Options{URL: sqltest.Pooler(t, url).Through(url), DirectURL: url, Pooler: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := sqltest.URL(t)
			o := way(t, url)
			o.MaxConns, o.LeaseTTL = 2, time.Second
			s := storetest.Must[*sql.Store](t)(sql.Open(t.Context(), o))
			defer s.Close()
			key := sessions.NewKey("robot", "cid", "")
			m := sessions.Message{ID: "m", RobotCode: "robot", ConversationID: "cid", Text: "hi"}
			storetest.Must[time.Time](t)(s.Leases.Beat(t.Context(), "a"))
			a := storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", key, m))

			frozen := storetest.OpenDB(t, pg.Options{URL: o.URL, DirectURL: o.DirectURL, Pooler: o.Pooler, MaxConns: 2})
			holds, thaw, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- frozen.WithLease(t.Context(), a.Lease, func(pgx.Tx, *dbsqlc.Session) error { close(holds); <-thaw; return nil })
			}()
			<-holds
			began := time.Now()
			other := storetest.Must[*sql.Store](t)(sql.Open(t.Context(), sql.Options{URL: url, MaxConns: 2, LeaseTTL: time.Second}))
			defer other.Close()
			storetest.Must[time.Time](t)(other.Leases.Beat(t.Context(), "b"))
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for { // until the heartbeat of the frozen one is old
				m.ID += "+"
				if l := storetest.Must[sessions.Accepted](t)(other.Inbox.Accept(ctx, "b", key, m)).Lease; l.Owner == "b" {
					break
				}
			}
			l := storetest.Must[sessions.Lease](t)(other.Leases.Acquire(ctx, key, "b"))
			if v := storetest.Must[sessions.View](t)(other.Turns.Begin(ctx, l, 10)); len(v.Pending) == 0 {
				t.Error("no message waits")
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			close(thaw)
			if err := <-ended; err == nil {
				t.Error("what the frozen replica wrote was committed")
			}
		})
	}
}

// A replica freezes in the middle of a pipeline: the server ran a part of its statements, holds their locks and has no time limit for
// the rest. The sweeps of another replica end it, so that the conversation goes on.
func TestFrozenInAPipeline(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s := storetest.Must[*sql.Store](t)(sql.Open(t.Context(), sql.Options{URL: url, MaxConns: 2, LeaseTTL: time.Second}))
	defer s.Close()
	key := sessions.NewKey("robot", "cid", "")
	m := sessions.Message{ID: "m", RobotCode: "robot", ConversationID: "cid", Text: "hi"}
	storetest.Must[time.Time](t)(s.Leases.Beat(t.Context(), "a"))
	storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", key, m))

	frozen := storetest.Must[*pgconn.PgConn](t)(pgconn.Connect(t.Context(), url))
	defer func() { _ = frozen.Close(context.Background()) }()
	part := frozen.StartPipeline(t.Context())
	part.SendQueryParams("UPDATE dingtalk_sessions SET title = 'frozen' WHERE session_key = $1 RETURNING title", [][]byte{[]byte(key)}, nil, nil, nil)
	part.SendFlushRequest()
	if err := part.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := part.GetResults(); err != nil { // the row is locked from here on
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	taken := make(chan error, 1)
	go func() {
		storetest.Must[time.Time](t)(s.Leases.Beat(ctx, "b"))
		for ctx.Err() == nil { // until the heartbeat of the frozen one is old
			if _, err := s.Leases.Acquire(ctx, key, "b"); !errors.Is(err, sessions.ErrLeaseHeld) {
				taken <- err
				return
			}
		}
		taken <- ctx.Err()
	}()
	sweep := time.NewTicker(100 * time.Millisecond)
	defer sweep.Stop()
	for {
		select {
		case err := <-taken:
			if err != nil {
				t.Errorf("the conversation waits for the frozen replica: %v", err)
			}
			return
		case <-sweep.C:
			storetest.Must[[]sessions.Key](t)(s.Inbox.Waiting(ctx, "b", 10))
		}
	}
}

// A restore of the same role waits for its client as a frozen replica does. It is not ended, although others wait for it.
func TestSlowCopyIsNotEnded(t *testing.T) {
	t.Parallel()
	pool := storetest.Must[*pgxpool.Pool](t)(pgxpool.New(t.Context(), sqltest.URL(t)))
	defer pool.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	waitFor := func(sessions string) {
		t.Helper()
		for storetest.Number(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "+sessions) == 0 {
			if ctx.Err() != nil {
				t.Fatalf("no session where %s", sessions)
			}
		}
	}
	from, to := io.Pipe()
	ended := make(chan error, 2)
	go func() {
		restore, err := pool.Acquire(ctx)
		if err == nil {
			defer restore.Release()
			_, err = restore.Conn().PgConn().CopyFrom(ctx, from, "COPY people FROM STDIN")
		}
		ended <- err
	}()
	waitFor("query LIKE 'COPY people%' AND wait_event = 'ClientRead'")
	go func() {
		_, err := pool.Exec(ctx, "BEGIN; LOCK TABLE people; COMMIT")
		ended <- err
	}()
	waitFor("wait_event_type = 'Lock'")
	if n := storetest.Must[int](t)(dbsqlc.New().StalledEnd(ctx, pool, 0)); n != 0 {
		t.Errorf("%d connections were ended", n)
	}
	_ = to.Close()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("the copy, or the session behind it: %v", err)
		}
	}
}
