package dingtalktest

import (
	"context"
	"fmt"
	"sort"
	"time"
)

// WaitFor waits until done accepts a consistent state. what names it in the error after ctx ends. done must not call
// the Server.
func (s *Server) WaitFor(ctx context.Context, what string, done func(State) bool) error {
	return s.wait(ctx, what, func() bool { return done(s.stateLocked()) })
}

// wait calls look, with s.mu held, at every change until it reports true.
func (s *core) wait(ctx context.Context, what string, look func() bool) error {
	s.mu.Lock()
	s.waiters++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiters--
		s.mu.Unlock()
	}()
	for {
		s.mu.Lock()
		ok, changed := look(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-s.done:
			return fmt.Errorf("waiting for %s: the simulator was closed", what)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; the simulator has %s", what, ctx.Err(), s.summary())
		}
	}
}

// WaitConns waits until at least n connections are live.
func (s *Server) WaitConns(ctx context.Context, n int) error {
	return s.WaitFor(ctx, fmt.Sprintf("%d live connections", n), func(st State) bool { return st.Live >= n })
}

// WaitNoConns waits until every connection has ended.
func (s *Server) WaitNoConns(ctx context.Context) error {
	return s.WaitFor(ctx, "no connection", func(st State) bool { return len(st.Connections) == 0 })
}

// WaitAck waits for the first ack of a message, by any push.
func (s *messages) WaitAck(ctx context.Context, msgID string) (Ack, error) {
	var ack Ack
	err := s.wait(ctx, "an ack of message "+msgID, func() bool {
		for _, a := range s.apps {
			if d := s.deliveries[deliveryKey{a.RobotCode, msgID}]; d != nil && d.firstAck != nil {
				ack = *d.firstAck
				return true
			}
		}
		return false
	})
	return ack, err
}

// WaitEntry waits for a line of the transcript that done accepts, old or new. done sees each line once, the oldest
// first, and must not call the Server.
func (s *core) WaitEntry(ctx context.Context, what string, done func(Entry) bool) (Entry, error) {
	var found Entry
	seen := 0 // seq of the last line that was looked at
	err := s.wait(ctx, what, func() bool {
		first := sort.Search(len(s.transcript), func(i int) bool { return s.transcript[i].Seq > seen })
		for _, e := range s.transcript[first:] {
			seen = e.Seq
			if done(e) {
				found = e
				return true
			}
		}
		return false
	})
	return found, err
}

// State is the whole simulator at one moment.
type State struct {
	Now time.Time `json:"now"`
	// Live counts connections that are not draining, half-open or zombies.
	Live        int          `json:"live"`
	Connections []Connection `json:"connections"`
	Apps        []AppState   `json:"apps"`
	// Messages counts remembered messages, Unacked those without a final ack.
	Messages   int `json:"messages"`
	Unacked    int `json:"unacked"`
	Replies    int `json:"replies"`
	Violations int `json:"violations"`
}

// AppState are the counters of one application.
type AppState struct {
	ClientID string `json:"clientId"`
	// Opens counts connections/open, TokenFetches both ways to a token.
	Opens        int `json:"opens"`
	TokenFetches int `json:"tokenFetches"`
	// APICalls and StreamUse count against the monthly budgets.
	APICalls    int `json:"apiCalls"`
	APIQuota    int `json:"apiQuota"`
	StreamUse   int `json:"streamUse"`
	StreamQuota int `json:"streamQuota"`
	// MaxLive is the most live connections at once, Deaf the time without any since the first.
	MaxLive int           `json:"maxLive"`
	Deaf    time.Duration `json:"deaf"`
}

// State returns the present state.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stateLocked()
}

func (s *Server) stateLocked() State {
	now := s.nowLocked()
	st := State{Now: now, Messages: len(s.order), Unacked: s.unacked, Replies: len(s.replies), Violations: len(s.violations)}
	for _, c := range s.conns {
		st.Connections = append(st.Connections, c.viewLocked())
		if c.worksLocked() {
			st.Live++
		}
	}
	for _, a := range s.apps {
		deaf := a.deaf
		if !a.deafSince.IsZero() {
			deaf += now.Sub(a.deafSince)
		}
		st.Apps = append(st.Apps, AppState{
			ClientID: a.ClientID, Opens: a.opens, TokenFetches: a.tokenFetches, APICalls: a.apiCalls, APIQuota: s.opts.APIQuota,
			StreamUse: a.streamUse, StreamQuota: s.opts.StreamQuota, MaxLive: a.maxLive, Deaf: deaf,
		})
	}
	return st
}

func (c *conn) viewLocked() Connection {
	pending := 0
	for p := range c.owed {
		if p.kind == pushBot {
			pending++
		}
	}
	return Connection{
		ID: c.id, ClientID: c.app.ClientID, UA: c.ua, State: c.state, Opened: c.opened, Subscriptions: sortedKeys(c.subs),
		Pending: pending, Acked: c.acked, EndReason: c.endReason,
	}
}

// Connections are the open stream connections, oldest first.
func (s *Server) Connections() []Connection { return s.State().Connections }

func (s *Server) describe() string {
	st := s.State()
	return fmt.Sprintf("%d live of %d connections, %d messages (%d unacknowledged), %d replies, %d violations",
		st.Live, len(st.Connections), st.Messages, st.Unacked, st.Replies, st.Violations)
}

// TB is NewServer's part of *testing.T, without package testing in programs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(f func())
}

// NewServer closes the simulator when the test ends. A failed test logs the transcript and the violations.
func NewServer(t TB, opts Options) *Server {
	t.Helper()
	s, err := Start(opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if f, ok := t.(interface{ Failed() bool }); ok && f.Failed() {
			for _, e := range s.Transcript() {
				t.Logf("%s", e)
			}
			for _, v := range s.Violations() {
				t.Logf("%s", v)
			}
		}
		s.Close()
	})
	return s
}
