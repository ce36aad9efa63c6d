package dingtalk

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/dingtalk/transporttest"
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
	testClient = transporttest.Client
	testSecret = transporttest.Secret
)

var (
	inGroup      = transporttest.InGroup
	await        = transporttest.Await
	testContext  = transporttest.Context
	noViolations = transporttest.NoViolations
)

// gateway is a transport that runs against a simulator and hands out what it accepted.
type gateway struct {
	*Transport
	*transporttest.Run
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
	t.Cleanup(tr.requests.HTTP.CloseIdleConnections)
	return tr
}

// start runs a transport until the test ends. accept is called with a message before it is handed out; nil: nothing.
func start(t *testing.T, s *dingtalktest.Server, accept chat.Accept) *gateway {
	t.Helper()
	return run(t, s, newTransport(t, s.URL, nil), accept)
}

func run(t *testing.T, s *dingtalktest.Server, tr *Transport, accept chat.Accept) *gateway {
	t.Helper()
	return &gateway{tr, transporttest.Start(t, s, tr, accept)}
}
