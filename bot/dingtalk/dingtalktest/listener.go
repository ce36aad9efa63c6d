package dingtalktest

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// listener is a TCP listener that can stop listening for a while, so that clients see "connection refused".
type listener struct {
	addr net.Addr

	mu     sync.Mutex
	cur    net.Listener  // nil while refusing
	resume chan struct{} // closed when cur is set again
	closed bool
	done   chan struct{}
}

func listen(addr string) (*listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &listener{addr: ln.Addr(), cur: ln, done: make(chan struct{}), resume: make(chan struct{})}, nil
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Accept() (net.Conn, error) {
	for {
		l.mu.Lock()
		cur, resume, closed := l.cur, l.resume, l.closed
		l.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		if cur == nil {
			select {
			case <-resume:
			case <-l.done:
			}
			continue
		}
		c, err := cur.Accept()
		if err == nil {
			return c, nil
		}
		l.mu.Lock()
		paused := l.cur != cur || l.closed
		l.mu.Unlock()
		if !paused {
			return nil, err
		}
	}
}

func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.done)
	if l.cur == nil {
		return nil
	}
	return l.cur.Close()
}

func (l *listener) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil || l.closed {
		return
	}
	_ = l.cur.Close()
	l.cur = nil
	l.resume = make(chan struct{})
}

func (l *listener) unpause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil || l.closed {
		return nil
	}
	ln, err := net.Listen("tcp", l.addr.String())
	if err != nil {
		return err
	}
	l.cur = ln
	close(l.resume)
	return nil
}

// RefuseConnections stops listening for d: new TCP connections are refused by the system, open ones stay.
func (s *Server) RefuseConnections(d time.Duration) {
	s.ln.pause()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(Entry{Kind: "fault", Detail: fmt.Sprintf("connections refused for %s", d)})
	s.afterLocked(d, s.listenAgain)
}

func (s *Server) listenAgain() {
	err := s.ln.unpause()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil { // somebody took the port meanwhile: try until it is free again
		s.noteLocked(Entry{Kind: "fault", Detail: "listening again: " + err.Error()})
		s.afterLocked(100*time.Millisecond, s.listenAgain)
		return
	}
	s.noteLocked(Entry{Kind: "fault", Detail: "connections accepted again"})
}
