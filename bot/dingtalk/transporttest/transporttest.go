// Package transporttest runs a receiver of DingTalk's messages against the simulator, for the tests of dingtalk and of the packages below it.
package transporttest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

// Client and Secret are the credentials of the simulator's application.
const (
	Client = "dingsimapp0001"
	Secret = "sim-secret"
)

// InGroup is a message of a person in a group.
var InGroup = dingtalktest.Message{Conversation: "cidRoom", Sender: "u0001", SenderNick: "张三", Text: "hi"}

// Receiver is the part of a transport that receives messages.
type Receiver interface {
	Run(ctx context.Context, accept chat.Accept) error
	Ready() bool
}

// Run is a receiver that runs until the test ends.
type Run struct {
	Got  chan sessions.Message // accepted
	Stop func()                // ends it and waits for it
	Done chan struct{}         // closed at its end
	Log  *Log
}

// Log collects log lines, for those that must be there and those that must not.
type Log struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all lines so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Start runs a receiver against a simulator. accept is called with a message before it is handed out; nil: nothing.
func Start(t *testing.T, s *dingtalktest.Server, r Receiver, accept chat.Accept) *Run {
	t.Helper()
	g := &Run{Got: make(chan sessions.Message, 10_000), Done: make(chan struct{}), Log: &Log{}}
	ctx, cancel := context.WithCancel(zerolog.New(g.Log).WithContext(context.Background()))
	go func() {
		defer close(g.Done)
		err := r.Run(ctx, func(ctx context.Context, m sessions.Message) error {
			if accept != nil {
				if err := accept(ctx, m); err != nil {
					return err
				}
			}
			g.Got <- m
			return nil
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	g.Stop = func() { cancel(); <-g.Done }
	t.Cleanup(g.Stop)
	Await(t, "a connection", r.Ready)
	// The client sees its handshake end a moment before the server counts the connection.
	if err := s.WaitConns(Context(t), 1); err != nil {
		t.Fatal(err)
	}
	return g
}

// Next returns the next accepted message.
func (g *Run) Next(t *testing.T) sessions.Message {
	t.Helper()
	select {
	case m := <-g.Got:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("no message arrived")
		return sessions.Message{}
	}
}

// Await polls until done, for conditions that have no signal.
func Await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// Context ends after 20 s, and with the test.
func Context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// NoViolations fails for each violation that the simulator saw.
func NoViolations(t *testing.T, s *dingtalktest.Server) {
	t.Helper()
	for _, v := range s.Violations() {
		t.Errorf("unexpected violation: %s", v)
	}
}
