package stream

import (
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/dingtalk/transporttest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		// The SDK opens connections through the default client.
		http.DefaultClient.CloseIdleConnections()
		os.Exit(code)
	}))
}

var (
	inGroup      = transporttest.InGroup
	await        = transporttest.Await
	testContext  = transporttest.Context
	noViolations = transporttest.NoViolations
)

// gateway is a stream that runs against a simulator and hands out what it accepted.
type gateway struct {
	*Stream
	*transporttest.Run
}

func newStream(base string) *Stream { return newStreamEvery(base, 0) }

func newStreamEvery(base string, keepAlive time.Duration) *Stream {
	s := New(App{ClientID: transporttest.Client, Secret: transporttest.Secret, APIBase: base, KeepAlive: keepAlive})
	s.timing.pauses.First, s.timing.pauses.Max, s.timing.poll = 20*time.Millisecond, 200*time.Millisecond, 5*time.Millisecond
	return s
}

// start runs a stream until the test ends. accept is called with a message before it is handed out; nil: nothing.
func start(t *testing.T, s *dingtalktest.Server, accept chat.Accept) *gateway {
	t.Helper()
	return run(t, s, newStream(s.URL), accept)
}

func run(t *testing.T, s *dingtalktest.Server, tr *Stream, accept chat.Accept) *gateway {
	t.Helper()
	return &gateway{tr, transporttest.Start(t, s, tr, accept)}
}

func simulator(t *testing.T) *dingtalktest.Server {
	t.Helper()
	return dingtalktest.NewServer(t, dingtalktest.Fast())
}
