package dingtalk

import (
	"strings"
	"testing"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/dingtalk/request"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// An unknown code means that the message surely did not arrive, and nothing about the next one; a passing one does not.
func TestUnknownCodesAreRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault, route string
		refused      bool
	}{
		{"unknown-code", dingtalktest.RouteWebhook, true},
		{"busy", dingtalktest.RouteWebhook, false},
		{"app-qps", dingtalktest.RouteWebhook, false},
		{"503", dingtalktest.RouteWebhook, false},
		{"html", dingtalktest.RouteWebhook, false},
		{"unknown-code", dingtalktest.RouteGroupSend, true},
		{"408", dingtalktest.RouteGroupSend, false},
		{"503", dingtalktest.RouteGroupSend, false},
	} {
		t.Run(c.fault+" "+c.route, func(t *testing.T) {
			t.Parallel()
			s := simulator(t)
			g := start(t, s, nil)
			o := asked(t, s, g, inGroup, "answer")
			if c.route != dingtalktest.RouteWebhook {
				o.Reply.Target.Webhook = ""
			}
			s.AddFault(dingtalktest.Fault{Route: c.route, Action: dingtalktest.Do(c.fault)})
			if e := mustFail(t, g, o); e.Refused != c.refused || e.Permanent || e.Maybe != (c.fault == "html" || c.fault == "408") {
				t.Errorf("classified as %+v", *e)
			}
			mustSend(t, g, o)
		})
	}
}

// DingTalk's messages may repeat a reply: errors, which are logged and stored, have the code alone.
func TestErrorsHaveNoWordOfDingTalk(t *testing.T) {
	t.Parallel()
	tr := newTransport(t, "https://api.dingtalk.example", nil)
	to := sessions.Target{ConversationID: "cid1", Webhook: "https://oapi.dingtalk.example/robot/sendBySession?session=s"}
	for name, a := range map[string]request.Answer{
		"webhook":  {Status: 200, Intact: true, Body: value.Object{"errcode": 310000.0, "errmsg": "content refused: SECRETWORD"}},
		"open API": {Status: 400, Intact: true, Body: value.Object{"code": "invalidParameter", "message": "cannot send SECRETWORD"}},
		"fault":    {Status: 500, Intact: true, Body: value.Object{"code": "SECRETWORD in words", "message": "SECRETWORD"}},
		"card":     {Status: 200, Intact: true, Body: value.Object{"success": false, "message": "SECRETWORD"}},
	} {
		errs := []error{tr.sender.webhooks.judgeAnswer(to, a)}
		if failed := tr.judge.OpenAPI(to, a, "sending"); failed != nil {
			errs = append(errs, failed)
		}
		if failed := (cardCalls{secret: testSecret}).denial(a, "sending"); failed != nil {
			errs = append(errs, failed)
		}
		for _, err := range errs {
			if err == nil || strings.Contains(err.Error(), "SECRETWORD") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}
