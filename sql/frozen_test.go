package sql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
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
			s := must[*sql.Store](t)(sql.Open(t.Context(), o))
			defer s.Close()
			key := sessions.NewKey("robot", "cid", "")
			m := sessions.Message{ID: "m", RobotCode: "robot", ConversationID: "cid", Text: "hi"}
			must[time.Time](t)(s.Beat(t.Context(), "a"))
			a := must[sessions.Accepted](t)(s.Accept(t.Context(), "a", key, m))

			holds, thaw, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- s.Hold(t.Context(), a.Lease, func() error { close(holds); <-thaw; return nil })
			}()
			<-holds
			began := time.Now()
			other := must[*sql.Store](t)(sql.Open(t.Context(), sql.Options{URL: url, MaxConns: 2, LeaseTTL: time.Second}))
			defer other.Close()
			must[time.Time](t)(other.Beat(t.Context(), "b"))
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for { // until the heartbeat of the frozen one is old
				m.ID += "+"
				if l := must[sessions.Accepted](t)(other.Accept(ctx, "b", key, m)).Lease; l.Owner == "b" {
					break
				}
			}
			l := must[sessions.Lease](t)(other.Acquire(ctx, key, "b"))
			if v := must[sessions.View](t)(other.Begin(ctx, l, 10)); len(v.Pending) == 0 {
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
	s := must[*sql.Store](t)(sql.Open(t.Context(), sql.Options{URL: url, MaxConns: 2, LeaseTTL: time.Second}))
	defer s.Close()
	key := sessions.NewKey("robot", "cid", "")
	m := sessions.Message{ID: "m", RobotCode: "robot", ConversationID: "cid", Text: "hi"}
	must[time.Time](t)(s.Beat(t.Context(), "a"))
	must[sessions.Accepted](t)(s.Accept(t.Context(), "a", key, m))

	frozen := must[*pgconn.PgConn](t)(pgconn.Connect(t.Context(), url))
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
		must[time.Time](t)(s.Beat(ctx, "b"))
		for ctx.Err() == nil { // until the heartbeat of the frozen one is old
			if _, err := s.Acquire(ctx, key, "b"); !errors.Is(err, sessions.ErrLeaseHeld) {
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
			must[[]sessions.Key](t)(s.Waiting(ctx, "b", 10))
		}
	}
}
