package dingtalktest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"ebb/bot/dingtalk/dingtalktest"
)

const openBody = `{"clientId":"dingsimapp0001","clientSecret":"sim-secret","ua":"raw/1",` +
	`"subscriptions":[{"type":"CALLBACK","topic":"/v1.0/im/bot/messages/get"},{"type":"CALLBACK","topic":"/v1.0/card/instances/callback"}]}`

// request sends its arguments and returns the status and the body.
func request(t *testing.T, method, url, body string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// raw is a stream client without manners: it does only what a test says.
type raw struct {
	*websocket.Conn
	t *testing.T
}

func ticket(t *testing.T, s *dingtalktest.Server) string {
	t.Helper()
	status, body := request(t, "POST", s.URL+"/v1.0/gateway/connections/open", openBody, nil)
	var out struct{ Endpoint, Ticket string }
	if err := json.Unmarshal([]byte(body), &out); err != nil || status != 200 {
		t.Fatalf("open answered %d %s", status, body)
	}
	return out.Endpoint + "?ticket=" + out.Ticket
}

// dial connects and waits until the simulator counts the connection in, which is a moment after the client's handshake.
func dial(t *testing.T, s *dingtalktest.Server) raw {
	t.Helper()
	n := len(s.Connections())
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx(t), ticket(t, s), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	t.Cleanup(func() { ws.Close() })
	if err := s.WaitFor(ctx(t), "the connection to be counted in", func(st dingtalktest.State) bool { return len(st.Connections) > n }); err != nil {
		t.Fatal(err)
	}
	return raw{ws, t}
}

type frame struct {
	Type    string            `json:"type"`
	Headers map[string]string `json:"headers"`
	Data    string            `json:"data"`
}

func (c raw) read() frame {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, b, err := c.ReadMessage()
	if err != nil {
		c.t.Fatalf("reading a frame: %v", err)
	}
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		c.t.Fatalf("frame %s: %v", b, err)
	}
	return f
}

func (c raw) msg() map[string]any {
	c.t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(c.read().Data), &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c raw) write(text string) {
	c.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c raw) ack(f frame) {
	c.t.Helper()
	c.write(fmt.Sprintf(`{"code":200,"headers":{"messageId":%q,"contentType":"application/json"},"message":"OK","data":%q}`, f.Headers["messageId"], f.Data))
}

// still are options without pings, so that the only frames are those that a test causes.
func still() dingtalktest.Options {
	o := dingtalktest.Fast()
	o.PingInterval = dingtalktest.Never
	return o
}

func waitViolation(t *testing.T, s *dingtalktest.Server, kind string) dingtalktest.Violation {
	t.Helper()
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "violation "+kind, func(e dingtalktest.Entry) bool {
		return e.Kind == "violation" && strings.HasPrefix(e.Detail, kind+":")
	}))
	v := s.Violations(kind)
	if len(v) != 1 || len(s.Violations()) != 1 {
		t.Fatalf("wanted one violation, of kind %s; there are %v", kind, s.Violations())
	}
	return v[0]
}

func TestWrongAcksAreReported(t *testing.T) {
	t.Parallel()
	ackFor := func(id, rest string) string {
		return fmt.Sprintf(`{"code":200,"headers":{"messageId":%q,"contentType":"application/json"},"message":"OK",%s}`, id, rest)
	}
	for name, tc := range map[string]struct {
		kind string
		play func(s *dingtalktest.Server, c, other raw, f frame)
	}{
		"unknown frame":    {dingtalktest.AckUnknown, func(_ *dingtalktest.Server, c, _ raw, f frame) { c.ack(f); c.write(ackFor("nobody", `"data":""`)) }},
		"twice":            {dingtalktest.AckTwice, func(_ *dingtalktest.Server, c, _ raw, f frame) { c.ack(f); c.ack(f) }},
		"other connection": {dingtalktest.AckWrongConnection, func(_ *dingtalktest.Server, c, other raw, f frame) { other.ack(f); c.ack(f) }},
		"data is an object": {dingtalktest.AckMalformed, func(_ *dingtalktest.Server, c, _ raw, f frame) {
			c.write(ackFor(f.Headers["messageId"], `"data":{"response":null}`))
		}},
		"no data":  {dingtalktest.AckMalformed, func(_ *dingtalktest.Server, c, _ raw, f frame) { c.write(ackFor(f.Headers["messageId"], `"x":1`)) }},
		"not JSON": {dingtalktest.AckMalformed, func(_ *dingtalktest.Server, c, _ raw, f frame) { c.ack(f); c.write("OK") }},
		"no contentType": {dingtalktest.AckMalformed, func(_ *dingtalktest.Server, c, _ raw, f frame) {
			c.write(`{"code":200,"headers":{"messageId":"` + f.Headers["messageId"] + `"},"data":""}`)
		}},
		"empty messageId":    {dingtalktest.AckMalformed, func(_ *dingtalktest.Server, c, _ raw, f frame) { c.ack(f); c.write(ackFor("", `"data":""`)) }},
		"late":               {dingtalktest.AckLate, func(s *dingtalktest.Server, c, _ raw, f frame) { s.Advance(4 * time.Second); c.ack(f) }},
		"closed without ack": {dingtalktest.AckLost, func(_ *dingtalktest.Server, c, _ raw, f frame) { c.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := still()
			o.Routing = dingtalktest.RouteRoundRobin
			o.RedeliverAfter = dingtalktest.Never
			s := dingtalktest.NewServer(t, o)
			c, other := dial(t, s), dial(t, s)
			s.Say(dingtalktest.Text("one"))
			s.Say(dingtalktest.Text("two"))
			other.ack(other.read())
			if err := s.WaitFor(ctx(t), "the good ack", func(st dingtalktest.State) bool { return st.Unacked == 1 }); err != nil {
				t.Fatal(err)
			}
			tc.play(s, c, other, c.read())
			waitViolation(t, s, tc.kind)
		})
	}
}

func TestMissingAckIsReportedAndTheMessageComesOnceMore(t *testing.T) {
	t.Parallel()
	o := still()
	o.RedeliverAfter, o.RedeliverMax = 50*time.Millisecond, 1
	s := dingtalktest.NewServer(t, o)
	c := dial(t, s)
	id := s.Say(dingtalktest.Text("hello"))
	first := c.read()
	second := c.read()
	if first.Data != second.Data || first.Headers["messageId"] == second.Headers["messageId"] {
		t.Errorf("redelivered %+v as %+v", first, second)
	}
	c.ack(second)
	if v := waitViolation(t, s, dingtalktest.AckMissing); v.MsgID != id || v.FrameID != first.Headers["messageId"] {
		t.Errorf("the violation is %+v", v)
	}
}

func TestOverdueAckShowsBeforeTheRedelivery(t *testing.T) {
	t.Parallel()
	o := still()
	o.RedeliverAfter, o.AckDeadline = dingtalktest.Never, time.Millisecond
	s := dingtalktest.NewServer(t, o)
	c := dial(t, s)
	s.Say(dingtalktest.Text("hello"))
	f := c.read()
	s.Advance(time.Second)
	if v := s.Violations(dingtalktest.AckMissing); len(v) != 1 || v[0].FrameID != f.Headers["messageId"] {
		t.Errorf("the violations are %v", v)
	}
}

func TestPingsAreChecked(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := dial(t, s)
	s.Ping()
	f := c.read()
	if f.Type != "SYSTEM" || f.Headers["topic"] != "ping" || !strings.Contains(f.Data, "opaque") {
		t.Errorf("the ping is %+v", f)
	}
	f.Data = `{"opaque":"something else"}`
	c.ack(f)
	waitViolation(t, s, dingtalktest.PingNotEchoed)
}

func TestTicketsAreForOneConnection(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	url := ticket(t, s)
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx(t), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	defer ws.Close()
	if _, resp, err := websocket.DefaultDialer.DialContext(ctx(t), url, nil); err == nil || resp == nil || resp.StatusCode != 401 {
		t.Errorf("a used ticket was answered with %v, %v", resp, err)
	}
	waitViolation(t, s, dingtalktest.TicketReused)
	late := ticket(t, s)
	s.Advance(2 * time.Minute)
	if _, _, err := websocket.DefaultDialer.DialContext(ctx(t), late, nil); err == nil {
		t.Error("an expired ticket was accepted")
	}
}

func TestOpenIsChecked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body, accept string
		status       int
		contains     string
		violation    string
	}{
		"right":            {openBody, "application/json", 200, `"endpoint":"ws://`, ""},
		"wrong secret":     {strings.Replace(openBody, "sim-secret", "guess", 1), "application/json", 401, "authFailed", ""},
		"no Accept":        {openBody, "*/*", 200, "<", dingtalktest.OpenMalformed},
		"no subscriptions": {`{"clientId":"dingsimapp0001","clientSecret":"sim-secret"}`, "application/json", 400, "subscriptions", dingtalktest.OpenMalformed},
		"not JSON":         {"hello", "application/json", 400, "cannot be read", dingtalktest.OpenMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dingtalktest.NewServer(t, still())
			status, body := request(t, "POST", s.URL+"/v1.0/gateway/connections/open", tc.body, map[string]string{"Accept": tc.accept})
			if status != tc.status || !strings.Contains(body, tc.contains) {
				t.Errorf("answered %d %s", status, body)
			}
			if tc.violation == "" {
				noViolations(t, s)
			} else {
				waitViolation(t, s, tc.violation)
			}
		})
	}
}

func TestReconnectStormIsReported(t *testing.T) {
	t.Parallel()
	o := still()
	o.OpensPerMinute = 3
	s := dingtalktest.NewServer(t, o)
	for range 4 {
		ticket(t, s)
	}
	waitViolation(t, s, dingtalktest.OpenTooOften)
}

func TestOnlySubscribedTopicsArePushed(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	body := `{"clientId":"dingsimapp0001","clientSecret":"sim-secret","subscriptions":[{"type":"EVENT","topic":"*"}]}`
	_, out := request(t, "POST", s.URL+"/v1.0/gateway/connections/open", body, nil)
	var o struct{ Endpoint, Ticket string }
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		t.Fatal(err)
	}
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx(t), o.Endpoint+"?ticket="+o.Ticket, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	defer ws.Close()
	id := s.Say(dingtalktest.Text("hello"))
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the message to be dropped", func(e dingtalktest.Entry) bool {
		return e.Kind == "dropped" && e.MsgID == id
	}))
}

func TestMalformedFramesAreThirteenAndExpectNoAck(t *testing.T) {
	t.Parallel()
	o := still()
	o.AckDeadline = time.Millisecond
	s := dingtalktest.NewServer(t, o)
	c := dial(t, s)
	names := s.PlayMalformed("cidMalformed")
	if len(names) != 13 || len(dingtalktest.MalformedFrames()) != 13 {
		t.Fatalf("sent %q", names)
	}
	var big, binary, empty, unreadable int
	for range names {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		kind, b, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 1<<20 {
			big++
		}
		if kind == websocket.BinaryMessage {
			binary++
		}
		if len(b) == 0 {
			empty++
		}
		if !json.Valid(bytes.ToValidUTF8(b, nil)) {
			unreadable++
		}
	}
	if big != 1 || binary != 1 || empty != 1 || unreadable != 2 {
		t.Errorf("%d big, %d binary, %d empty, %d unreadable", big, binary, empty, unreadable)
	}
	c.write(`{"code":404,"headers":{"messageId":"","contentType":"application/json"},"message":"","data":""}`)
	s.Advance(time.Minute)
	noViolations(t, s)
}

func TestEveryVariantIsOnePush(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := dial(t, s)
	variants := dingtalktest.Variants()
	for name, m := range variants {
		m.MsgID = "id of " + name
		s.Say(m)
	}
	for range variants {
		f := c.read()
		c.ack(f)
		var p map[string]any
		if err := json.Unmarshal([]byte(f.Data), &p); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p["msgId"].(string), "id of ")
		if _, ok := variants[name]; !ok {
			t.Errorf("a message without a sender: %v", p)
		}
		if name == "over quota" && (p["errorCode"] != 20001.0 || p["text"] != nil) {
			t.Errorf("over quota is %v", p)
		}
		if name == "direct text" && (p["conversationType"] != "1" || p["atUsers"] != nil) {
			t.Errorf("a one-to-one message is %v", p)
		}
	}
	if err := s.WaitFor(ctx(t), "all acks", func(st dingtalktest.State) bool { return st.Unacked == 0 }); err != nil {
		t.Error(err)
	}
	noViolations(t, s)
}
