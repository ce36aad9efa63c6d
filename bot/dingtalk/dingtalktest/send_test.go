package dingtalktest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

// hook says a message to a raw client and returns its webhook and msgId.
func hook(t *testing.T, s *dingtalktest.Server, m dingtalktest.Message) (url, msgID string) {
	t.Helper()
	var c raw
	if len(s.Connections()) == 0 {
		c = dial(t, s)
	} else {
		t.Fatal("hook wants the only connection")
	}
	s.Say(m)
	f := c.read()
	c.ack(f)
	c.Close()
	if err := s.WaitNoConns(ctx(t)); err != nil {
		t.Fatal(err)
	}
	var p struct{ SessionWebhook, MsgID string }
	if err := json.Unmarshal([]byte(f.Data), &p); err != nil {
		t.Fatal(err)
	}
	return p.SessionWebhook, p.MsgID
}

func text(words string) string {
	return fmt.Sprintf(`{"msgtype":"text","text":{"content":%q}}`, words)
}

func TestWebhookAnswersAsDingTalkDoes(t *testing.T) {
	t.Parallel()
	group := dingtalktest.Message{Conversation: "cidRelease", Sender: "u1", Text: "hello"}
	mention := func(in string, ids string) string {
		return `{"msgtype":"markdown","markdown":{"title":"t","text":"` + in + `"},"at":{"atUserIds":[` + ids + `]}}`
	}
	for name, tc := range map[string]struct {
		prepare   func(s *dingtalktest.Server)
		body      string
		header    map[string]string
		session   string
		code      float64
		posted    int
		violation string
	}{
		"text":                 {body: text("ok"), posted: 1},
		"markdown mention":     {body: mention("ok @u1", `"u1"`), posted: 1},
		"mention not in text":  {body: mention("ok", `"u1"`), posted: 1, violation: dingtalktest.MentionNotInText},
		"mention of a strange": {body: mention("ok @u9", `"u9"`), posted: 1, violation: dingtalktest.ReplyWrongPlace},
		"empty":                {body: `{"msgtype":"empty"}`},
		"link":                 {body: `{"msgtype":"link","link":{"title":"t","text":"x","messageUrl":"https://x"}}`, posted: 1},
		"action card":          {body: `{"msgtype":"actionCard","actionCard":{"title":"t","text":"x","singleTitle":"o","singleURL":"https://x"}}`, posted: 1},
		"feed card":            {body: `{"msgtype":"feedCard","feedCard":{"links":[{"title":"t"}]}}`, posted: 1},
		"unsupported kind":     {body: `{"msgtype":"image"}`, code: 400105},
		"no body":              {code: 40035},
		"not JSON":             {body: "hello", code: 40035},
		"wrong content type":   {body: text("ok"), header: map[string]string{"Content-Type": "text/plain"}, code: 43004},
		"too long":             {body: text(strings.Repeat("长", 7000)), code: 460101},
		"unknown session":      {body: text("ok"), session: "nobody", code: 300001, violation: dingtalktest.WebhookUnknown},
		"expired": {
			prepare: func(s *dingtalktest.Server) { s.Advance(91 * time.Minute) }, body: text("ok"), code: 300001,
			violation: dingtalktest.WebhookExpired,
		},
		"ended early": {prepare: func(s *dingtalktest.Server) { s.ExpireWebhooks("cidRelease") }, body: text("ok"), code: 300001},
		"disbanded":   {prepare: func(s *dingtalktest.Server) { s.SetDisbanded("cidRelease", true) }, body: text("ok"), code: 400013},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dingtalktest.NewServer(t, still())
			url, msgID := hook(t, s, group)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			if tc.session != "" {
				url = s.URL + "/robot/sendBySession?session=" + tc.session
			}
			status, body := request(t, "POST", url, tc.body, tc.header)
			if want := fmt.Sprintf(`"errcode":%.0f`, tc.code); status != 200 || !strings.Contains(body, want) {
				t.Errorf("answered %d %s, want %s", status, body, want)
			}
			replies := s.Replies("cidRelease")
			if len(replies) != tc.posted || (tc.posted == 1 && replies[0].MsgID != msgID) {
				t.Errorf("the conversation has %+v", replies)
			}
			if tc.violation == "" {
				noViolations(t, s)
			} else {
				waitViolation(t, s, tc.violation)
			}
		})
	}
}

func TestWebhookIsTwentyAMinuteForAConversation(t *testing.T) {
	t.Parallel()
	o := still()
	o.WebhookBlock = 10 * time.Minute
	s := dingtalktest.NewServer(t, o)
	url, _ := hook(t, s, dingtalktest.Text("hello"))
	other, _ := hook(t, s, dingtalktest.Text("hello").In("cidOther"))
	for i := range 20 {
		if r := post(t, url, text(fmt.Sprint(i))); r["errcode"] != 0.0 {
			t.Fatalf("reply %d: %v", i, r)
		}
	}
	if r := post(t, url, text("one too many")); r["errcode"] != 130101.0 {
		t.Errorf("the 21st was answered with %v", r)
	}
	if r := post(t, other, text("elsewhere")); r["errcode"] != 0.0 {
		t.Errorf("another conversation was answered with %v", r)
	}
	s.Advance(2 * time.Minute)
	if r := post(t, url, text("still blocked")); r["errcode"] != 130101.0 {
		t.Errorf("within the block the answer is %v", r)
	}
	s.Advance(10 * time.Minute)
	if r := post(t, url, text("free again")); r["errcode"] != 0.0 {
		t.Errorf("after the block the answer is %v", r)
	}
	noViolations(t, s)
}

func TestMsgUUIDPostsOnce(t *testing.T) {
	t.Parallel()
	for name, ignore := range map[string]bool{"honoured": false, "ignored": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := still()
			o.IgnoreMsgUUID = ignore
			s := dingtalktest.NewServer(t, o)
			url, _ := hook(t, s, dingtalktest.Text("hello"))
			for range 2 {
				if r := post(t, url, `{"msgtype":"text","msgUuid":"once","text":{"content":"ok"}}`); r["errcode"] != 0.0 {
					t.Errorf("answered %v", r)
				}
			}
			twice := s.Violations(dingtalktest.ReplyTwice)
			if n := len(s.Replies("")); ignore != (n == 2) || ignore != (len(twice) == 1) {
				t.Errorf("%d replies, violations %v", n, twice)
			}
		})
	}
}

func TestFaultsOfTheWebhook(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]struct {
		status   int
		contains string
		posted   int
	}{
		"busy":             {200, `"errcode":-1`, 0},
		"rate-limited":     {200, `"errcode":130101`, 0},
		"throttled":        {200, `"errcode":410100`, 0},
		"session-gone":     {200, `"errcode":300001`, 0},
		"unsupported-type": {200, `"errcode":400105`, 0},
		"bot-disabled":     {200, `"errcode":400102`, 0},
		"bot-not-in-group": {200, `"errcode":400106`, 0},
		"disbanded":        {200, `"errcode":400013`, 0},
		"unsafe-text":      {200, `"errcode":430102`, 0},
		"too-long":         {200, `"errcode":460101`, 0},
		"app-qps":          {200, `"errcode":90018`, 0},
		"zero-as-string":   {200, `"errcode":"0"`, 1},
		"500":              {500, "html", 0},
		"502":              {502, "html", 0},
		"503":              {503, "html", 0},
		"504":              {504, "html", 0},
		"html":             {200, "<html>", 0},
		"truncated":        {0, "unexpected EOF", 1},
		"reset-before":     {0, "reset", 0},
		"reset-after":      {0, "reset", 1},
		"redirect":         {404, "InvalidAction.NotFound", 0},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			s := dingtalktest.NewServer(t, still())
			url, msgID := hook(t, s, dingtalktest.Text("hello"))
			id := s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, MsgID: msgID, Action: dingtalktest.Do(action)})
			status, body := request(t, "POST", url, text("ok"), nil)
			if status != want.status || !strings.Contains(body, want.contains) {
				t.Errorf("answered %d %s", status, body)
			}
			if n := len(s.Replies("")); n != want.posted {
				t.Errorf("%d replies were posted", n)
			}
			must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the fault's line", func(e dingtalktest.Entry) bool { return e.Kind == "fault" && e.MsgID == msgID }))
			if r := post(t, url, text("after the fault")); r["errcode"] != 0.0 || s.FaultFired(id) != 1 {
				t.Errorf("the second call: %v, fired %d times", r, s.FaultFired(id))
			}
		})
	}
}

func TestPostedButAnsweredTooLate(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	url, _ := hook(t, s, dingtalktest.Text("hello"))
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Action{Delay: time.Minute, Effect: true}})
	client := &http.Client{Timeout: 100 * time.Millisecond}
	resp, err := client.Post(url, "application/json", strings.NewReader(text("ok")))
	if err == nil {
		resp.Body.Close()
		t.Fatal("the answer came in time")
	}
	must[dingtalktest.Reply](t)(s.WaitReply(ctx(t), "", "ok"))
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the impatient client", func(e dingtalktest.Entry) bool {
		return e.Kind == "http" && strings.Contains(e.Detail, "did not wait")
	}))
}

func TestFaultsMatchCountAndChance(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	a, _ := hook(t, s, dingtalktest.Text("hello").In("cidA"))
	b, _ := hook(t, s, dingtalktest.Text("hello").In("cidB"))
	codes := func(url string, n int) (out []float64) {
		for i := range n {
			out = append(out, post(t, url, text(fmt.Sprint(i)))["errcode"].(float64))
		}
		return out
	}
	busy := dingtalktest.Do("busy")
	id := s.AddFault(dingtalktest.Fault{Conversation: "cidA", Nth: 2, Count: 2, Action: busy})
	if got := codes(a, 4); fmt.Sprint(got) != "[0 -1 -1 0]" {
		t.Errorf("second and third of A: %v", got)
	}
	if got := codes(b, 1); got[0] != 0 {
		t.Errorf("B got A's fault: %v", got)
	}
	s.ClearFaults(id)
	s.AddFault(dingtalktest.Fault{Contains: "poison", Count: dingtalktest.Unlimited, Action: busy})
	if r := post(t, b, text("poison")); r["errcode"] != -1.0 {
		t.Errorf("by content: %v", r)
	}
	s.ClearFaults()
	s.AddFault(dingtalktest.Fault{Probability: 0.5, Seed: 7, Count: dingtalktest.Unlimited, Action: busy})
	bad := 0
	for _, code := range codes(b, 12) {
		if code == -1 {
			bad++
		}
	}
	if bad == 0 || bad == 12 {
		t.Errorf("at even odds %d of 12 calls failed", bad)
	}
}

func TestFaultsOfOpenAndHandshake(t *testing.T) {
	t.Parallel()
	const openURL = "/v1.0/gateway/connections/open"
	for action, want := range map[string]struct {
		status   int
		contains string
	}{
		"auth-failed":      {401, "authFailed"},
		"bad-request":      {400, "invalidParameter"},
		"plain-http-proxy": {400, "plain HTTP request"},
		"qps":              {403, "QpsLimit"},
		"500":              {500, "html"},
		"unavailable":      {503, "ServiceUnavailable"},
		"html":             {200, "<html>"},
		"xml":              {200, "<OpenConnectionResponse>"},
		"empty-endpoint":   {200, `"endpoint":""`},
		"empty-ticket":     {200, `"ticket":""`},
		"dead-endpoint":    {200, "127.0.0.1:1/"},
		"reset-before":     {0, "reset"},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			s := dingtalktest.NewServer(t, still())
			s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteOpen, Action: dingtalktest.Do(action)})
			if status, body := request(t, "POST", s.URL+openURL, openBody, nil); status != want.status || !strings.Contains(body, want.contains) {
				t.Errorf("answered %d %s", status, body)
			}
			if status, _ := request(t, "POST", s.URL+openURL, openBody, nil); status != 200 {
				t.Errorf("the next open answered %d", status)
			}
			noViolations(t, s)
		})
	}
	for name, f := range map[string]dingtalktest.Fault{
		"expired ticket": {Route: dingtalktest.RouteOpen, Action: dingtalktest.Do("expired-ticket")},
		"used ticket":    {Route: dingtalktest.RouteOpen, Action: dingtalktest.Do("used-ticket")},
		"unknown ticket": {Route: dingtalktest.RouteOpen, Action: dingtalktest.Do("unknown-ticket")},
		"handshake 403":  {Route: dingtalktest.RouteConnect, Action: dingtalktest.Status(403)},
		"handshake 503":  {Route: dingtalktest.RouteConnect, Action: dingtalktest.Status(503)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dingtalktest.NewServer(t, still())
			s.AddFault(f)
			status, body := request(t, "GET", "http"+strings.TrimPrefix(ticket(t, s), "ws"), "", nil)
			if status < 400 {
				t.Errorf("the handshake was answered with %d %s", status, body)
			}
			noViolations(t, s)
		})
	}
}

func TestCloseEndsHangingCalls(t *testing.T) {
	t.Parallel()
	s := dingtalktest.New(still())
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteConnect, Action: dingtalktest.Do("hang")})
	url := "http" + strings.TrimPrefix(ticket(t, s), "ws")
	got := make(chan error, 1)
	go func() {
		resp, err := http.Get(url)
		if err == nil {
			resp.Body.Close()
		}
		got <- err
	}()
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the handshake to hang", func(e dingtalktest.Entry) bool { return e.Kind == "fault" }))
	s.Close()
	s.Close()
	<-got
}
