package dingtalk

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/dingtalktest"
)

// governed is a transport with a month of calls, and a reply that needs one.
func governed(t *testing.T, quota int64, change func(*Config)) (*dingtalktest.Server, *gateway, *calls.Governor) {
	t.Helper()
	s := simulator(t)
	governor := calls.New(calls.Options{Quota: quota})
	return s, run(t, s, newTransport(t, s.URL, func(c *Config) {
		c.Calls = governor
		if change != nil {
			change(c)
		}
	}), nil), governor
}

// A call that DingTalk refused for its rate is returned, and the next one of that API waits.
func TestRateRefusalIsReturned(t *testing.T) {
	t.Parallel()
	s, g, governor := governed(t, 100, nil)
	o := asked(t, s, g, inGroup, "answer")
	o.Reply.Target.Webhook = ""
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Action: dingtalktest.Do("qps")})
	mustFail(t, g, o)
	if n := governor.Status().Calls; n != 0 {
		t.Errorf("%d calls are counted", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := governor.Wait(ctx, calls.GroupSend); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the next call of that API may begin: %v", err)
	}
	if err := governor.Wait(t.Context(), calls.PrivateSend); err != nil {
		t.Error(err)
	}
	mustSend(t, g, o)
	if made, counted := s.State().Apps[0].APICalls, governor.Status().Calls; made != 1 || counted != 1 {
		t.Errorf("DingTalk counts %d calls, the governor %d", made, counted)
	}
}

// After DingTalk's refusal for the month no call is tried for a while.
func TestExhaustedMonthStopsCalls(t *testing.T) {
	t.Parallel()
	s, g, governor := governed(t, 0, nil)
	o := asked(t, s, g, inGroup, "answer")
	hook := o.Reply.Target.Webhook
	o.Reply.Target.Webhook = ""
	id := s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Count: dingtalktest.Unlimited, Action: dingtalktest.Do("quota")})
	for range 3 {
		if e := mustFail(t, g, o); e.After < 59*time.Minute || e.Permanent || e.Maybe {
			t.Errorf("classified as %+v", *e)
		}
	}
	if n := s.FaultFired(id); n != 1 || governor.Level() != calls.Spent {
		t.Errorf("%d calls, level %s", n, governor.Level())
	}
	o.Reply.Target.Webhook = hook
	if sent := mustSend(t, g, o); sent.Via != chat.ViaWebhook {
		t.Errorf("sent %+v", sent)
	}
}

// Calls beyond the month's number are not made, and webhooks are not counted.
func TestMonthBoundsCalls(t *testing.T) {
	t.Parallel()
	s, g, governor := governed(t, 2, nil)
	o := asked(t, s, g, inGroup, "answer")
	hook := o.Reply.Target.Webhook
	for range 3 {
		mustSend(t, g, o)
		o.Reply.Nonce += "x"
	}
	o.Reply.Target.Webhook = ""
	for range 2 {
		mustSend(t, g, o)
	}
	if e := mustFail(t, g, o); e.After <= 0 || e.Permanent || e.Maybe || !calls.IsRefused(e) || !strings.Contains(e.Error(), "spent") {
		t.Errorf("beyond the month: %+v", *e)
	}
	o.Reply.Target.Webhook, o.Reply.Nonce = hook, o.Reply.Nonce+"y"
	mustSend(t, g, o)
	if made := s.State().Apps[0].APICalls; made != 2 || governor.Status().Calls != 2 {
		t.Errorf("%d calls were made, %+v", made, governor.Status())
	}
}

// A call that never left this machine is returned; one without an answer stays counted.
func TestLostCallsAreCounted(t *testing.T) {
	t.Parallel()
	var refuse bool
	s, g, governor := governed(t, 100, func(c *Config) {
		c.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if refuse && strings.HasSuffix(r.URL.Path, "/send") {
				return nil, &net.OpError{Op: "dial", Err: errors.New("no route")}
			}
			return http.DefaultTransport.RoundTrip(r)
		})}
	})
	o := asked(t, s, g, inGroup, "answer")
	o.Reply.Target.Webhook = ""
	refuse = true
	if e := mustFail(t, g, o); e.Maybe || governor.Status().Calls != 0 {
		t.Errorf("not sent: %+v, %+v", *e, governor.Status())
	}
	refuse = false
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Action: dingtalktest.Do("reset-after")})
	if e := mustFail(t, g, o); !e.Maybe || governor.Status().Calls != 1 {
		t.Errorf("without an answer: %+v, %+v", *e, governor.Status())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
