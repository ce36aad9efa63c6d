package dingtalktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/client"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/logger"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"go.uber.org/goleak"

	"ebb/bot/dingtalk/dingtalktest"
)

type quiet struct{}

func (quiet) Debugf(string, ...any)   {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warningf(string, ...any) {}
func (quiet) Errorf(string, ...any)   {}
func (quiet) Fatalf(string, ...any)   {}

func TestMain(m *testing.M) {
	logger.SetLogger(quiet{})
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultClient.CloseIdleConnections()
	}))
}

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return c
}

func expired() context.Context {
	c, cancel := context.WithCancel(context.Background())
	cancel()
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// sdk is an official client whose handler hands over each payload and answers as configured.
type sdk struct {
	*client.StreamClient
	got chan map[string]any
}

func start(t *testing.T, s *dingtalktest.Server, handle func(map[string]any) (*payload.DataFrameResponse, error)) *sdk {
	t.Helper()
	c := &sdk{got: make(chan map[string]any, 1000)}
	c.StreamClient = client.NewStreamClient(
		client.WithAppCredential(client.NewAppCredentialConfig("dingsimapp0001", "sim-secret")),
		client.WithOpenApiHost(s.URL))
	c.RegisterCallbackRouter(dingtalktest.TopicBot, func(_ context.Context, df *payload.DataFrame) (*payload.DataFrameResponse, error) {
		var p map[string]any
		if err := json.Unmarshal([]byte(df.Data), &p); err != nil {
			return nil, err
		}
		c.got <- p
		if handle != nil {
			return handle(p)
		}
		return payload.NewSuccessDataFrameResponse(), nil
	})
	n := len(s.Connections())
	if err := c.Start(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitFor(ctx(t), "the connection to be counted in", func(st dingtalktest.State) bool { return len(st.Connections) > n }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (c *sdk) next(t *testing.T) map[string]any {
	t.Helper()
	select {
	case p := <-c.got:
		return p
	case <-time.After(10 * time.Second):
		t.Fatal("no callback arrived")
		return nil
	}
}

func post(t *testing.T, url, body string) map[string]any {
	t.Helper()
	resp, err := http.Post(url, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func noViolations(t *testing.T, s *dingtalktest.Server) {
	t.Helper()
	for _, v := range s.Violations() {
		t.Errorf("unexpected violation: %s", v)
	}
}

func TestOfficialClientAnswersAMessage(t *testing.T) {
	t.Parallel()
	opts := dingtalktest.Fast()
	opts.PingInterval = 50 * time.Millisecond
	s := dingtalktest.NewServer(t, opts)
	c := start(t, s, nil)
	if err := s.WaitConns(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	id := s.Say(dingtalktest.Message{Conversation: "cidRelease", Sender: "u1", Text: "hello"})
	p := c.next(t)
	if p["msgId"] != id || p["text"].(map[string]any)["content"] != " hello" || p["conversationType"] != "2" {
		t.Errorf("the payload is %v", p)
	}
	ack := must[dingtalktest.Ack](t)(s.WaitAck(ctx(t), id))
	if ack.Code != 200 {
		t.Errorf("the ack is %+v", ack)
	}
	body := `{"msgtype":"markdown","markdown":{"title":"Hi","text":"hello @u1"},"at":{"atUserIds":["u1"]}}`
	if r := post(t, p["sessionWebhook"].(string), body); r["errcode"] != 0.0 {
		t.Errorf("the webhook answered %v", r)
	}
	r := must[dingtalktest.Reply](t)(s.WaitReply(ctx(t), "cidRelease", "hello"))
	if r.MsgID != id || r.Via != "webhook" || r.Title != "Hi" || len(r.AtUserIDs) != 1 {
		t.Errorf("the reply is %+v", r)
	}
	if err := s.WaitFor(ctx(t), "two answered pings", func(st dingtalktest.State) bool {
		return len(st.Connections) == 1 && st.Connections[0].Acked >= 3
	}); err != nil {
		t.Error(err)
	}
	noViolations(t, s)
}

func TestDisconnectMakesTheOfficialClientReconnect(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	c := start(t, s, nil)
	first := s.Connections()[0].ID
	if n := s.Disconnect(dingtalktest.DisconnectOptions{}); n != 1 {
		t.Fatalf("disconnected %d connections", n)
	}
	err := s.WaitFor(ctx(t), "another connection", func(st dingtalktest.State) bool {
		return st.Live == 1 && st.Connections[len(st.Connections)-1].ID != first
	})
	if err != nil {
		t.Fatal(err)
	}
	id := s.Say(dingtalktest.Text("again"))
	if p := c.next(t); p["msgId"] != id {
		t.Errorf("got %v", p)
	}
	must[dingtalktest.Ack](t)(s.WaitAck(ctx(t), id))
	if st := s.State(); st.Apps[0].Opens != 2 || st.Apps[0].Deaf == 0 {
		t.Errorf("the state is %+v", st)
	}
	noViolations(t, s)
}

func TestUnacknowledgedMessagesComeAgain(t *testing.T) {
	t.Parallel()
	opts := dingtalktest.Fast()
	opts.RedeliverAfter, opts.RedeliverMax, opts.RetryOnError = 100*time.Millisecond, 2, true
	s := dingtalktest.NewServer(t, opts)
	c := start(t, s, func(map[string]any) (*payload.DataFrameResponse, error) { return nil, errors.New("store is down") })
	id := s.Say(dingtalktest.Text("hello"))
	for i := range 3 {
		if p := c.next(t); p["msgId"] != id {
			t.Errorf("push %d is %v", i, p)
		}
	}
	frames := map[string]bool{}
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the third ack", func(e dingtalktest.Entry) bool {
		if e.Kind == "ack" && e.MsgID == id && e.Status == 500 {
			frames[e.FrameID] = true
		}
		return len(frames) == 3
	}))
	noViolations(t, s)
}

func TestCommandedRedeliveries(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	c := start(t, s, nil)
	id := s.Say(dingtalktest.Text("hello"))
	c.next(t)
	must[dingtalktest.Ack](t)(s.WaitAck(ctx(t), id))
	for _, o := range []dingtalktest.RedeliverOptions{
		{}, {SameFrameID: true}, {After: 20 * time.Millisecond, Times: 2, Every: 20 * time.Millisecond}, {Everywhere: true},
	} {
		if !s.Redeliver(id, o) {
			t.Fatalf("message %s is unknown", id)
		}
		for range max(o.Times, 1) {
			if p := c.next(t); p["msgId"] != id {
				t.Errorf("%+v: got %v", o, p)
			}
		}
	}
	if s.Redeliver("nobody said this", dingtalktest.RedeliverOptions{}) {
		t.Error("an unknown message was redelivered")
	}
	if err := s.WaitFor(ctx(t), "six acks", func(st dingtalktest.State) bool { return st.Connections[0].Acked >= 6 }); err != nil {
		t.Error(err)
	}
	noViolations(t, s)
}

func TestMessagesAreSpreadOverConnections(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	a, b := start(t, s, nil), start(t, s, nil)
	for i := range 40 {
		s.Say(dingtalktest.Text(fmt.Sprint(i)))
	}
	if err := s.WaitFor(ctx(t), "all acks", func(st dingtalktest.State) bool { return st.Unacked == 0 }); err != nil {
		t.Fatal(err)
	}
	if len(a.got) == 0 || len(b.got) == 0 || len(a.got)+len(b.got) != 40 {
		t.Errorf("%d messages on one connection, %d on the other", len(a.got), len(b.got))
	}
	noViolations(t, s)
}
