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
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

// governed is a transport with a month of calls, and a reply that needs one.
func governed(t *testing.T, quota int64, change func(*Config)) (*dingtalktest.Server, *gateway, *calls.Governor) {
	t.Helper()
	s := simulator(t)
	governor := calls.New(calls.Options{Store: calls.NewMemory(), Quota: quota})
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

// resume ends DingTalk's refusal of the month, as an operator does: a changed number of calls begins it again.
func (w *cardWorld) resume() {
	w.Helper()
	if _, err := w.months.OpenCallMonth(w.Context(), calls.MonthAt(time.Now()), 1001); err != nil {
		w.Fatal(err)
	}
	if err := w.governor.Refresh(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// While DingTalk refuses the month's calls, open cards stay as they are. They are closed at once when an operator has resumed
// calls, and new ones are opened: the refusal is no fault of cards.
func TestCardsAfterResumedCalls(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	live, o := w.turn()
	track := live.Stop()
	w.s.LeaveAPICalls(0)
	o = w.commit(o, track)
	if sent := mustSend(t, w.g, o); sent.Via != chat.ViaWebhook {
		t.Errorf("meanwhile the answer went by %s", sent.Via)
	}
	if err := w.store.Outbox.Settle(t.Context(), sessions.SendOutcome{Key: o.Key, ID: o.ID, Sent: true}); err != nil {
		t.Fatal(err)
	}
	task := w.g.Background()[0]
	for range 2 {
		if err := task.Do(t.Context()); err != nil && !calls.IsRefused(err) {
			t.Error(err)
		}
	}
	w.s.LeaveAPICalls(100)
	w.resume()
	if err := w.store.Cards.SettleCard(t.Context(), cardKey, track, sessions.CardOpen); err != nil { // some seconds later
		t.Fatal(err)
	}
	if err := task.Do(t.Context()); err != nil {
		t.Errorf("closing the card: %v", err)
	}
	if c := w.s.Cards("")[0]; c.State != dingtalktest.CardFailed {
		t.Errorf("the card is %s", c.State)
	}
	next, o := w.turn()
	o = w.commit(o, next.Stop())
	if sent := mustSend(t, w.g, o); sent.Via != chat.ViaCard {
		t.Errorf("afterwards the answer went by %s", sent.Via)
	}
}

// Replies to schedules leave calls for cards and for the answers to people. They wait aside meanwhile.
func TestRemindersLeaveCallsForAnswers(t *testing.T) {
	t.Parallel()
	s, g, governor := governed(t, 60, nil)
	answer := asked(t, s, g, inGroup, "answer")
	answer.Reply.Target.Webhook = ""
	reminder := answer
	reminder.Reply.Target.Scheduled, reminder.Reply.Text = true, "reminder"
	mustSend(t, g, reminder)
	made := 1
	for ; ; made++ {
		if _, err := governor.Reserve(t.Context(), calls.Reminder, calls.GroupSend); err != nil {
			break
		}
	}
	reminder.Reply.Text = "next reminder"
	if e := mustFail(t, g, reminder); made != 50 || !e.Aside || e.After <= 0 || e.After > time.Hour {
		t.Errorf("%d calls were for reminders, then %+v; want 50", made, *e)
	}
	if _, err := governor.Reserve(t.Context(), calls.Card, calls.CardCreate, calls.CardStream); err != nil {
		t.Errorf("no card is permitted: %v", err)
	}
	mustSend(t, g, answer)
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
	if e := mustFail(t, g, o); e.After <= 0 || e.Permanent || e.Maybe || !e.Aside || !calls.IsRefused(e) || !strings.Contains(e.Error(), "spent") {
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
