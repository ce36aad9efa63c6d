package mcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// awaitTime is the wait of a call for a server that is being connected again.
	awaitTime = 5 * time.Second
	pingTime  = 5 * time.Second
)

// link has the session with a server, which calls share. Another session replaces one that broke.
type link struct {
	server Server
	now    func() time.Time
	broken chan struct{} // a call found the session dead

	mu       sync.Mutex
	session  *mcp.ClientSession // nil: not connected
	online   chan struct{}      // closed while connected
	since    time.Time
	failures int
	fault    string
}

func newLink(s Server, now func() time.Time) *link {
	return &link{server: s, now: now, broken: make(chan struct{}, 1), online: make(chan struct{}), since: now()}
}

// status has all but the tools.
func (l *link) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Status{Name: l.server.Name, Connected: l.session != nil, Since: l.since, Failures: l.failures, Fault: l.fault}
}

func (l *link) joined(session *mcp.ClientSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.since, l.failures, l.fault = session, l.now(), 0, ""
	close(l.online)
}

func (l *link) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		l.session, l.since, l.online = nil, l.now(), make(chan struct{})
	}
	l.failures++
	l.fault = l.server.faultOf(err)
}

// awaitShortly returns the session, and waits shortly for one that is being made.
func (l *link) awaitShortly(ctx context.Context) (*mcp.ClientSession, error) {
	ctx, stop := context.WithTimeout(ctx, awaitTime)
	defer stop()
	return l.await(ctx)
}

// await returns the session, and waits for one until ctx ends.
func (l *link) await(ctx context.Context) (*mcp.ClientSession, error) {
	for {
		l.mu.Lock()
		session, online := l.session, l.online
		l.mu.Unlock()
		if session != nil {
			return session, nil
		}
		select {
		case <-online:
		case <-ctx.Done():
			return nil, errAway
		}
	}
}

var errAway = errors.New("the server is not connected")

// verify checks after a failed call whether the session lives. One that does not is replaced. A session whose end is known is replaced at
// once; one that only did not answer in time is asked beside the turn.
func (l *link) verify(ctx context.Context, session *mcp.ClientSession, err error) {
	if errors.Is(err, mcp.ErrConnectionClosed) || neverArrived(err) {
		l.drop(session)
		return
	}
	ping := func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), pingTime)
		defer stop()
		if session.Ping(ctx, nil) != nil {
			l.drop(session)
		}
	}
	if ctx.Err() != nil {
		go ping()
		return
	}
	ping()
}

// drop lets calls wait for a new session in place of a dead one.
func (l *link) drop(session *mcp.ClientSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == session {
		l.session, l.since, l.online = nil, l.now(), make(chan struct{})
		signal(l.broken)
	}
}

// neverArrived reports whether the server can't have seen a call.
func neverArrived(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, mcp.ErrSessionMissing) || ok && dial.Op == "dial"
}

// resource reads a resource of the server.
func (l *link) resource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	session, err := l.awaitShortly(ctx)
	if err != nil {
		return nil, err
	}
	return session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}
