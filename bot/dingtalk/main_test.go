package dingtalk

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("ebb/sql/localpg.(*Server).supervise"), goleak.Cleanup(func(code int) {
		// The SDK opens connections through the default client.
		http.DefaultClient.CloseIdleConnections()
		sqltest.Exit(code)
	}))
}

const (
	testClient = "dingsimapp0001"
	testSecret = "sim-secret"
)

// gateway is a transport that runs against a simulator and hands out what it accepted.
type gateway struct {
	*Transport
	got  chan sessions.Message
	stop func() // ends Run and waits for it
	done chan struct{}
	log  *logBuffer
}

// logBuffer collects the log, for what must not be in it and what must.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newTransport(t *testing.T, base string, change func(*Config)) *Transport {
	t.Helper()
	c := Config{ClientID: testClient, ClientSecret: testSecret, APIBase: base, OAPIBase: base}
	if change != nil {
		change(&c)
	}
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	tr.timing.pauses.First, tr.timing.pauses.Max, tr.timing.poll = 20*time.Millisecond, 200*time.Millisecond, 5*time.Millisecond
	t.Cleanup(tr.requests.HTTP.CloseIdleConnections)
	return tr
}

// start runs a transport until the test ends. accept is what to do with a message before it is handed out; nil: nothing.
func start(t *testing.T, s *dingtalktest.Server, accept chat.Accept) *gateway {
	t.Helper()
	return run(t, s, newTransport(t, s.URL, nil), accept)
}

func run(t *testing.T, s *dingtalktest.Server, tr *Transport, accept chat.Accept) *gateway {
	t.Helper()
	g := &gateway{Transport: tr, got: make(chan sessions.Message, 10_000), done: make(chan struct{}), log: &logBuffer{}}
	ctx, cancel := context.WithCancel(zerolog.New(g.log).WithContext(context.Background()))
	go func() {
		defer close(g.done)
		err := tr.Run(ctx, func(ctx context.Context, m sessions.Message) error {
			if accept != nil {
				if err := accept(ctx, m); err != nil {
					return err
				}
			}
			g.got <- m
			return nil
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	g.stop = func() { cancel(); <-g.done }
	t.Cleanup(g.stop)
	await(t, "a connection", tr.Ready)
	// The client sees its handshake end a moment before the server counts the connection.
	if err := s.WaitConns(testContext(t), 1); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *gateway) next(t *testing.T) sessions.Message {
	t.Helper()
	select {
	case m := <-g.got:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("no message arrived")
		return sessions.Message{}
	}
}

// await polls until done, for conditions that have no signal.
func await(t *testing.T, what string, done func() bool) {
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

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func noViolations(t *testing.T, s *dingtalktest.Server) {
	t.Helper()
	for _, v := range s.Violations() {
		t.Errorf("unexpected violation: %s", v)
	}
}
