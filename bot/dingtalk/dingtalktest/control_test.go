package dingtalktest_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"ebb/bot/dingtalk/dingtalktest"
)

func sim(t *testing.T, s *dingtalktest.Server, method, path, body string, out any) string {
	t.Helper()
	status, answer := request(t, method, s.URL+"/_sim/"+path, body, nil)
	if status != 200 {
		t.Fatalf("%s %s answered %d %s", method, path, status, answer)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(answer), out); err != nil {
			t.Fatalf("%s %s answered %s: %v", method, path, answer, err)
		}
	}
	return answer
}

func TestControlPlanePlaysAConversation(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := start(t, s, nil)
	sim(t, s, "GET", "wait/conns?n=1", "", nil)
	var said struct{ MsgID string }
	sim(t, s, "POST", "say", `{"conversation":"cidRelease","sender":"u1","text":"hello"}`, &said)
	p := c.next(t)
	var ack dingtalktest.Ack
	sim(t, s, "GET", "wait/ack?msgId="+url.QueryEscape(said.MsgID), "", &ack)
	if p["msgId"] != said.MsgID || ack.Code != 200 {
		t.Errorf("got %v, acknowledged with %+v", p, ack)
	}
	sim(t, s, "POST", "redeliver", `{"msgId":"`+said.MsgID+`","times":2}`, nil)
	c.next(t)
	c.next(t)
	var fault struct{ Fault int }
	sim(t, s, "POST", "fault", `{"route":"webhook","do":"rate-limited","count":1}`, &fault)
	hook := p["sessionWebhook"].(string)
	if r := post(t, hook, text("an answer")); r["errcode"] != 130101.0 || fault.Fault != 1 {
		t.Errorf("fault %d answered %v", fault.Fault, r)
	}
	post(t, hook, text("an answer"))
	var reply dingtalktest.Reply
	sim(t, s, "GET", "wait/reply?conversation=cidRelease&contains=answer", "", &reply)
	var replies []dingtalktest.Reply
	sim(t, s, "GET", "replies?conversation=cidRelease", "", &replies)
	if len(replies) != 1 || replies[0].Text != "an answer" || reply.MsgID != said.MsgID {
		t.Errorf("the replies are %+v", replies)
	}
	var faults []dingtalktest.Entry
	sim(t, s, "GET", "transcript?kind=fault", "", &faults)
	if len(faults) != 1 || !strings.Contains(faults[0].Detail, "130101") {
		t.Errorf("the transcript has %v", faults)
	}
	if got := strings.TrimSpace(sim(t, s, "GET", "violations", "", nil)); got != "[]" {
		t.Errorf("the violations are %s", got)
	}
	var st dingtalktest.State
	sim(t, s, "GET", "state", "", &st)
	if st.Live != 1 || st.Replies != 1 || len(st.Apps) != 1 {
		t.Errorf("the state is %+v", st)
	}
}

func TestControlPlaneCommands(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := dial(t, s)
	sim(t, s, "POST", "user", `{"staffId":"u7","nick":"Ada"}`, nil)
	sim(t, s, "POST", "group", `{"id":"cidRoom","title":"Room"}`, nil)
	sim(t, s, "POST", "say", `{"conversation":"cidRoom","sender":"u7","text":"hi"}`, nil)
	f := c.read()
	if !strings.Contains(f.Data, `"senderNick":"Ada"`) || !strings.Contains(f.Data, `"conversationTitle":"Room"`) {
		t.Errorf("the payload is %s", f.Data)
	}
	c.ack(f)
	sim(t, s, "POST", "say", `{"data":"not JSON"}`, nil)
	if f := c.read(); f.Data != "not JSON" {
		t.Errorf("raw data arrived as %q", f.Data)
	}
	sim(t, s, "POST", "push", `{"type":"SYSTEM","topic":"KEEPALIVE","data":"{}"}`, nil)
	if f := c.read(); f.Headers["topic"] != "KEEPALIVE" {
		t.Errorf("the frame is %+v", f)
	}
	sim(t, s, "POST", "malformed", `{"conversation":"cidRoom","names":["data is not JSON"]}`, nil)
	if f := c.read(); f.Data != "certainly not JSON" {
		t.Errorf("the malformed frame is %+v", f)
	}
	sim(t, s, "POST", "burst", `{"n":3,"conversations":2,"within":"10ms"}`, nil)
	for range 3 {
		c.ack(c.read())
	}
	before := s.Now()
	sim(t, s, "POST", "clock", `{"advance":"1h"}`, nil)
	if s.Now().Sub(before).Minutes() < 59 {
		t.Error("the clock did not move")
	}
	for _, cmd := range []string{"expire", "revoke"} {
		sim(t, s, "POST", cmd, `{}`, nil)
	}
	sim(t, s, "POST", "lose", `{"n":1}`, nil)
	sim(t, s, "POST", "zombie", `{}`, nil)
	sim(t, s, "POST", "halfopen", `{}`, nil)
	sim(t, s, "DELETE", "fault", "", nil)
	sim(t, s, "POST", "drop", `{"how":"fin"}`, nil)
	sim(t, s, "GET", "wait/conns?n=0", "", nil)
	sim(t, s, "POST", "restart", `{"refuse":"1ms"}`, nil)
	if names := sim(t, s, "GET", "actions", "", nil); !strings.Contains(names, "rate-limited") {
		t.Errorf("the actions are %s", names)
	}
	for _, list := range []string{"connections", "cards", "replies"} {
		if got := strings.TrimSpace(sim(t, s, "GET", list, "", nil)); got != "[]" {
			t.Errorf("%s are %s", list, got)
		}
	}
	sim(t, s, "POST", "refuse", `{"for":"1ms"}`, nil)
}

func TestControlPlaneRefusesMistakes(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	for name, tc := range map[string]struct{ method, path, body, contains string }{
		"not JSON":         {"POST", "say", "hello", "not JSON"},
		"unknown field":    {"POST", "say", `{"texts":"x"}`, "unknown field"},
		"bad duration":     {"POST", "restart", `{"refuse":5}`, "duration"},
		"unknown message":  {"POST", "redeliver", `{"msgId":"none"}`, "no message"},
		"no connection":    {"POST", "disconnect", `{}`, "no such connection"},
		"unknown action":   {"POST", "fault", `{"do":"dance"}`, "dance"},
		"strange drop":     {"POST", "drop", `{"how":"gently"}`, "gently"},
		"nobody to listen": {"POST", "malformed", `{}`, "no live connection"},
		"nobody for push":  {"POST", "push", `{"type":"SYSTEM"}`, "no live connection"},
		"unknown card":     {"POST", "click", `{"card":"none"}`, "no such card"},
		"timeout":          {"GET", "wait/reply?contains=never&timeout=10ms", "", "never"},
		"bad timeout":      {"GET", "wait/conns?timeout=soon", "", "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := request(t, tc.method, s.URL+"/_sim/"+tc.path, tc.body, nil)
			if status != 400 || !strings.Contains(body, tc.contains) {
				t.Errorf("answered %d %s", status, body)
			}
		})
	}
}
