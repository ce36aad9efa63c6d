package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

// asked says something in a conversation and returns the reply to it that is to be sent.
func asked(t *testing.T, s *dingtalktest.Server, g *gateway, m dingtalktest.Message, text string) sessions.Outgoing {
	t.Helper()
	s.Say(m)
	in := g.Next(t)
	return sessions.Outgoing{Reply: sessions.Reply{Text: text, Nonce: "nonce-" + string(in.ID), Target: sessions.Target{
		RobotCode: in.RobotCode, ConversationID: in.ConversationID, ConversationType: in.ConversationType,
		Webhook: in.Webhook, WebhookExpires: in.WebhookExpires, StaffID: in.StaffID,
		Mentions: []sessions.Mention{{StaffID: in.StaffID, Nick: in.SenderNick}},
	}}}
}

func simulator(t *testing.T) *dingtalktest.Server {
	t.Helper()
	return dingtalktest.NewServer(t, dingtalktest.Fast())
}

func mustSend(t *testing.T, g *gateway, o sessions.Outgoing) chat.Sent {
	t.Helper()
	sent, err := g.Send(testContext(t), o)
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	return sent
}

// sendAll sends the parts of a reply that are left.
func sendAll(t *testing.T, g *gateway, o sessions.Outgoing) (chat.Sent, error) {
	t.Helper()
	for {
		sent, err := g.Send(testContext(t), o)
		if err != nil || !sent.More {
			return sent, err
		}
		if sent.Part != o.Part+1 {
			t.Fatalf("sent %+v as part %d", sent, o.Part)
		}
		o.Part = sent.Part
	}
}

func mustFail(t *testing.T, g *gateway, o sessions.Outgoing) *chat.SendError {
	t.Helper()
	_, err := g.Send(testContext(t), o)
	s, ok := errors.AsType[*chat.SendError](err)
	if !ok {
		t.Fatalf("Send returned %v, not a SendError", err)
	}
	for _, secret := range []string{testSecret, "session=", "robot/sendBySession", "access_token="} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds %q: %v", secret, err)
		}
	}
	return s
}

func TestReplyGoesToTheWebhookAndMentionsTheAsker(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	o := asked(t, s, g, inGroup, "## Done\n\nall is well")
	if sent := mustSend(t, g, o); sent.Via != "webhook" || sent.Part != 1 {
		t.Errorf("sent %+v", sent)
	}
	r := s.Replies("cidRoom")
	if len(r) != 1 || r[0].Title != "Done" || !strings.Contains(r[0].Text, "@u0001") || !strings.Contains(r[0].Text, "all is well") ||
		len(r[0].AtUserIDs) != 1 || r[0].AtAll {
		t.Errorf("the group saw %+v", r)
	}
	private := asked(t, s, g, dingtalktest.Message{Direct: true, Sender: "u0002", Text: "hi"}, "yes")
	mustSend(t, g, private)
	if r := s.Replies(string(private.Reply.Target.ConversationID)); len(r) != 1 || r[0].Text != "yes" || len(r[0].AtUserIDs) != 0 {
		t.Errorf("the person saw %+v", r)
	}
	noViolations(t, s)
}

func TestLongReplyArrivesInParts(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "第%d段很长的话。\n\n", i)
	}
	o := asked(t, s, g, inGroup, text.String())
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Nth: 3, Action: dingtalktest.Do("502")})
	sent, err := sendAll(t, g, o)
	if err == nil || sent.Part != 2 {
		t.Fatalf("sent %+v, %v, though the third part failed", sent, err)
	}
	o.Part = sent.Part
	if sent, err = sendAll(t, g, o); err != nil {
		t.Fatal(err)
	}
	r := s.Replies("cidRoom")
	if sent.Part != len(r) || len(r) < 4 {
		t.Errorf("%d parts arrived, %d are reported", len(r), sent.Part)
	}
	count := 0
	for i, p := range r {
		count += strings.Count(p.Text, "段很长的话")
		if p.Bytes > 15_000 || (len(p.AtUserIDs) > 0) != (i == 0) {
			t.Errorf("part %d has %d bytes and mentions %q", i, p.Bytes, p.AtUserIDs)
		}
	}
	if count != 2000 {
		t.Errorf("%d of 2000 paragraphs arrived", count)
	}
	noViolations(t, s)
}

func TestWebhookFailuresAreClassified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault                   string
		permanent, maybe, after bool
	}{
		{"busy", false, false, false},
		{"rate-limited", false, false, true},
		{"throttled", false, false, true},
		{"app-qps", false, false, true},
		{"ip-ban", false, false, true},
		{"408", false, true, false}, // issue 10, point 18: of something in between
		{"499", false, true, false},
		{"500", false, true, false},
		{"502", false, true, false},
		{"502-after", false, true, false},
		{"503", false, false, false},
		{"504", false, true, false},
		{"html", false, true, false},
		{"truncated", false, true, false},
		{"reset-before", false, true, false},
		{"unsupported-type", true, false, false},
		{"bot-disabled", true, false, false},
		{"bot-not-in-group", true, false, false},
		{"disbanded", true, false, false},
		{"unsafe-text", true, false, false},
		{"too-long", true, false, false},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			s := simulator(t)
			g := start(t, s, nil)
			o := asked(t, s, g, inGroup, "answer")
			s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Do(c.fault)})
			e := mustFail(t, g, o)
			if e.Permanent != c.permanent || e.Maybe != c.maybe || (e.After > 0) != c.after || e.Content != (c.fault == "unsafe-text" || c.fault == "too-long") {
				t.Errorf("classified as %+v", *e)
			}
			if apis := s.State().Apps[0].APICalls; apis > 0 {
				t.Errorf("%d calls of the open API for a webhook that works", apis)
			}
		})
	}
}

func TestExpiredWebhooksFallBackToTheOpenAPI(t *testing.T) {
	t.Parallel()
	direct := dingtalktest.Message{Direct: true, Sender: "u0002", Text: "hi"}
	for _, c := range []struct {
		name   string
		m      dingtalktest.Message
		fault  string
		change func(*sessions.Outgoing)
		posts  int // to the webhook
	}{
		{"none given", inGroup, "", func(o *sessions.Outgoing) { o.Reply.Target.Webhook = "" }, 0},
		{"none given, private", direct, "", func(o *sessions.Outgoing) { o.Reply.Target.Webhook = "" }, 0},
		{"session unknown", inGroup, "session-gone", nil, 1},
		{"session unknown, private", direct, "session-gone", nil, 1},
		{"redirected", inGroup, "redirect", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := simulator(t)
			g := start(t, s, nil)
			o := asked(t, s, g, c.m, "answer")
			if c.change != nil {
				c.change(&o)
			}
			if c.fault != "" {
				s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Do(c.fault)})
			}
			for range 2 { // the second finds the token cached
				if sent := mustSend(t, g, o); c.posts == 0 && sent.Via != "openapi" {
					t.Errorf("sent %+v", sent)
				}
				o.Reply.Nonce, o.Reply.Text = "other", "another answer"
			}
			r := s.Replies(string(o.Reply.Target.ConversationID))
			if len(r) != 2 || r[0].Via != "openapi" || !strings.Contains(r[0].Text, "answer") {
				t.Fatalf("the conversation saw %+v", r)
			}
			if !c.m.Direct && !strings.HasPrefix(r[0].Text, "张三") {
				t.Errorf("the asker is not named: %q", r[0].Text)
			}
			if n := s.State().Apps[0].TokenFetches; n != 1 {
				t.Errorf("%d tokens were fetched", n)
			}
			noViolations(t, s)
		})
	}
}

// An application sends the replies of a robot that it does not serve by their webhooks alone: its calls would be made with credentials of
// another robot.
func TestOtherRobotsHaveWebhooksAlone(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := run(t, s, newTransport(t, s.URL, func(c *Config) { c.Serves = func(r sessions.RobotCode) bool { return r == testClient } }), nil)
	o := asked(t, s, g, inGroup, "answer")
	o.Reply.Target.RobotCode = "gone"
	if sent := mustSend(t, g, o); sent.Via != chat.ViaWebhook {
		t.Errorf("sent %+v", sent)
	}
	o.Reply.Target.Webhook = ""
	if failed := mustFail(t, g, o); failed.Permanent || !failed.Aside || failed.After <= 0 {
		t.Errorf("without a webhook: %+v", failed)
	}
	if _, err := g.Upload(t.Context(), "gone", sessions.File{Kind: "image", Body: []byte("x")}); err == nil {
		t.Error("a file was uploaded")
	}
	if fault, ok := errors.AsType[*chat.FileError](g.Download(t.Context(), "gone", sessions.Attachment{Code: "c"}, nil, 1)); !ok || fault.Fault != sessions.MediaExpired {
		t.Errorf("a file was downloaded: %v", fault)
	}
	if app := s.State().Apps[0]; app.APICalls != 0 || app.TokenFetches != 0 {
		t.Errorf("%d calls, %d tokens", app.APICalls, app.TokenFetches)
	}
	o.Reply.Target.RobotCode = testClient
	if sent := mustSend(t, g, o); sent.Via != chat.ViaOpenAPI {
		t.Errorf("its own reply was sent %+v", sent)
	}
	noViolations(t, s)
}

// elsewhere counts the requests that it gets.
func elsewhere(t *testing.T) (*httptest.Server, *int) {
	t.Helper()
	hits := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits++
		_, _ = w.Write([]byte(`{"errcode":0}`))
	}))
	t.Cleanup(h.Close)
	return h, &hits
}

func TestForeignWebhooksAreNeverCalled(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	other, hits := elsewhere(t)
	for _, hook := range []string{
		other.URL + "/robot/sendBySession?session=x", strings.Replace(s.URL, "http://", "https://", 1) + "/robot/sendBySession?session=x",
		strings.Replace(s.URL, "http://", "http://user@", 1), "file:///etc/passwd", "http://[::1", "//x", s.URL + ".example.com/",
	} {
		o := asked(t, s, g, inGroup, "secret answer to "+hook)
		o.Reply.Target.Webhook = hook
		if sent := mustSend(t, g, o); sent.Via != "openapi" {
			t.Errorf("%s: sent %+v", hook, sent)
		}
	}
	o := asked(t, s, g, inGroup, "one more")
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Action{
		Status: 307, Header: map[string]string{"Location": other.URL},
	}})
	mustSend(t, g, o)
	if *hits > 0 {
		t.Errorf("a foreign host got %d replies", *hits)
	}
}

func TestUnreachablePeopleAreGivenUp(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	o := asked(t, s, g, dingtalktest.Message{Direct: true, Sender: "u0001", Text: "hi"}, "answer")
	o.Reply.Target.Webhook = ""
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteDirectSend, Action: dingtalktest.Do("flow-controlled")})
	if e := mustFail(t, g, o); e.After == 0 || e.Permanent {
		t.Errorf("a person who gets too many messages: %+v", *e)
	}
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteDirectSend, Action: dingtalktest.Action{
		Body: `{"processQueryKey":"","invalidStaffIdList":["u0001"],"flowControlledStaffIdList":[]}`,
	}})
	g.sender.limits = newLimits(0)
	if e := mustFail(t, g, o); !e.Permanent {
		t.Errorf("a person who does not exist: %+v", *e)
	}
	o.Reply.Target.StaffID = ""
	if e := mustFail(t, g, o); !e.Permanent {
		t.Errorf("a person without a staff id: %+v", *e)
	}
}

func TestOpenAPIFailuresAreClassified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault            string
		permanent, maybe bool
		after            time.Duration // at least
	}{
		{"qps", false, false, time.Second},
		{"quota", false, false, time.Hour},
		{"send-too-fast", false, false, time.Second},
		{"permission", false, false, time.Minute},
		{"ip-ban", false, false, time.Minute},
		{"system-error", false, true, 0},
		{"502", false, true, 0},
		{"502-after", false, true, 0},
		{"503", false, false, 0},
		{"truncated", false, true, 0},
		{"reset-after", false, true, 0},
		{"group-disbanded", true, false, 0},
		{"param-too-long", true, false, 0},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			s := simulator(t)
			g := start(t, s, nil)
			o := asked(t, s, g, inGroup, "answer")
			o.Reply.Target.Webhook = ""
			s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Action: dingtalktest.Do(c.fault)})
			aside := c.fault == "quota" || c.fault == "permission" // the conversation's webhooks still work
			if e := mustFail(t, g, o); e.Permanent != c.permanent || e.Maybe != c.maybe || e.After < c.after || e.Aside != aside {
				t.Errorf("classified as %+v", *e)
			}
		})
	}
}

func TestRefusedTokensAreReplacedOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"invalid-token", "unauthorized", "token-invalid", "token-expired"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := simulator(t)
			g := start(t, s, nil)
			o := asked(t, s, g, inGroup, "answer")
			o.Reply.Target.Webhook = ""
			id := s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Action: dingtalktest.Do(fault)})
			mustSend(t, g, o)
			if n := len(s.Replies("cidRoom")); n != 1 {
				t.Errorf("%d replies arrived", n)
			}
			if app := s.State().Apps[0]; app.TokenFetches != 2 {
				t.Errorf("%d tokens were fetched", app.TokenFetches)
			}
			s.ClearFaults(id)
			id = s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Count: dingtalktest.Unlimited, Action: dingtalktest.Do(fault)})
			if e := mustFail(t, g, o); e.Permanent || !e.Aside || e.After < time.Second {
				t.Errorf("a token that is refused for ever: %+v", *e)
			}
			if n := s.FaultFired(id); n != 2 {
				t.Errorf("it was tried %d times", n)
			}
			noViolations(t, s)
		})
	}
	s := simulator(t)
	g := start(t, s, nil)
	o := asked(t, s, g, inGroup, "answer")
	o.Reply.Target.Webhook = ""
	mustSend(t, g, o)
	s.RevokeTokens()
	o.Reply.Text = "another"
	mustSend(t, g, o)
	noViolations(t, s)
}

// A reply that was shown, although we never learned of it, is not shown again: both tries carry the same key.
func TestTimeoutsAreRepeatedUnderTheSameKey(t *testing.T) {
	t.Parallel()
	for _, cut := range []dingtalktest.Action{
		{Name: "posted, answered too late", Delay: 2 * time.Second, Effect: true},
		dingtalktest.Do("reset-after"), dingtalktest.Do("truncated"), dingtalktest.Do("502-after"),
	} {
		s := simulator(t)
		g := start(t, s, nil)
		g.requests.Timeout = 300 * time.Millisecond
		o := asked(t, s, g, inGroup, "answer")
		s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: cut})
		if e := mustFail(t, g, o); !e.Maybe || e.Permanent {
			t.Errorf("%s: classified as %+v", cut, *e)
		}
		g.requests.Timeout = 5 * time.Second
		mustSend(t, g, o)
		if r := s.Replies("cidRoom"); len(r) != 1 {
			t.Errorf("%s: the group saw the answer %d times", cut, len(r))
		}
	}
}

func TestSuccessMayBeAString(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	o := asked(t, s, g, inGroup, "answer")
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Do("zero-as-string")})
	mustSend(t, g, o)
	if n := len(s.Replies("cidRoom")); n != 1 {
		t.Errorf("%d replies arrived", n)
	}
}

func TestRepliesPerMinuteAreHeld(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := run(t, s, newTransport(t, s.URL, func(c *Config) { c.RepliesPerMinute = 3 }), nil)
	o := asked(t, s, g, inGroup, "answer")
	for range 3 {
		mustSend(t, g, o)
	}
	if e := mustFail(t, g, o); e.After <= 0 || e.After > time.Minute || e.Maybe || e.Permanent {
		t.Errorf("the fourth: %+v", *e)
	}
	other := asked(t, s, g, inGroup.In("cidOther"), "answer")
	mustSend(t, g, other)
	if fired := g.Stats().RateLimited; fired != 1 {
		t.Errorf("%d are counted as limited", fired)
	}
}

func TestAfterARateLimitTheConversationIsSilent(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	o := asked(t, s, g, inGroup, "answer")
	id := s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Count: dingtalktest.Unlimited, Action: dingtalktest.Do("rate-limited")})
	first := mustFail(t, g, o)
	second := mustFail(t, g, o)
	if first.After <= 0 || second.After <= 0 || second.After > first.After || s.FaultFired(id) != 1 {
		t.Errorf("waits %s and %s, %d requests", first.After, second.After, s.FaultFired(id))
	}
}

func TestSendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	o := asked(t, s, g, inGroup, "answer")
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Do("hang")})
	ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer cancel()
	_, err := g.Send(ctx, o)
	if e, ok := errors.AsType[*chat.SendError](err); !ok || !e.Maybe {
		t.Errorf("got %v", err)
	}
}
