package dingtalk

import (
	"testing"

	"ebb/bot/dingtalk/dingtalktest"
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
