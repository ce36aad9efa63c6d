package approval_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/approval"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// world is a conversation with calls that wait.
type world struct {
	*storetest.Chat
	t    *testing.T
	desk *approval.Desk
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, _ := storetest.Open(t, sqltest.URL(t))
	return &world{storetest.NewChat(t, s, "cid", storetest.ZhangID, false), t, &approval.Desk{Store: s.Approvals, Wait: time.Hour, Location: time.UTC}}
}

// ask commits a turn of 张伟 with calls that wait, and returns its first message.
func (w *world) ask(wait time.Duration, tools ...string) int64 {
	w.t.Helper()
	waiting := storetest.Must[approval.Waiting](w.t)(w.desk.Waiting(w.t.Context(), w.Lease.Key))
	said := w.Speak(fmt.Sprint("ask", tools, wait), storetest.ZhangID, storetest.ZhangNick, "please", nil)
	t := sessions.TurnResult{Taken: []int64{said.EventID}, TakenTokens: []int{1}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "waits"}}}
	for _, tool := range tools {
		one, ok := waiting.Add(sessions.Approval{Key: w.Lease.Key, EventID: said.EventID, Tool: tool, Arguments: "{}", AskedBy: storetest.ZhangID, Wait: wait})
		if !ok {
			w.t.Fatal("too many calls wait")
		}
		t.Waits = append(t.Waits, one)
	}
	storetest.Must[sessions.Committed](w.t)(w.Store.Turns.Commit(w.t.Context(), w.Lease, t))
	return said.EventID
}

func (w *world) decide(r approval.Request) (tools string) {
	w.t.Helper()
	for _, a := range storetest.Must[[]sessions.Approval](w.t)(w.desk.Decide(w.t.Context(), w.Lease, r)) {
		tools += fmt.Sprintf("%d %s %s;", a.ID, a.Tool, a.State)
	}
	return tools
}

func (w *world) refusal(r approval.Request) string {
	w.t.Helper()
	text, _, err := w.desk.Refusal(w.t.Context(), w.Lease.Key, r, "en")
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func by(who sessions.UserID, event int64) approval.Request {
	return approval.Request{State: sessions.ApprovalApproved, Person: who, Event: event, At: time.Now().Add(time.Hour)}
}

// The asker and administrators decide, by number, by the button of the turn, or without either while one call waits. A message decides
// once, also when its turn is repeated.
func TestDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.refusal(by(storetest.ZhangID, 900)); !strings.Contains(got, "Nothing waits") {
		t.Errorf("without a call: %q", got)
	}
	w.ask(time.Hour, "x__one")
	stranger := by(storetest.LiID, 901)
	if got, why := w.decide(stranger), w.refusal(stranger); got != "" || !strings.Contains(why, "Only the person who asked") {
		t.Errorf("a stranger decided %q, and reads %q", got, why)
	}
	stranger.ID = 1
	if got := w.decide(stranger); got != "" {
		t.Errorf("a stranger decided %q by the number", got)
	}
	for range 2 {
		if got := w.decide(by(storetest.ZhangID, 902)); got != "1 x__one approved;" {
			t.Errorf("the asker decided %q", got)
		}
	}
	late := by(storetest.ZhangID, 903)
	late.ID, late.State = 1, sessions.ApprovalRejected
	if got, why := w.decide(late), w.refusal(late); got != "" || !strings.Contains(why, "#1 was decided by") || !strings.Contains(why, ": approved") {
		t.Errorf("a later decision: %q, with the words %q", got, why)
	}

	turn := w.ask(time.Hour, "x__two", "x__three")
	if got, why := w.decide(by(storetest.ZhangID, 904)), w.refusal(by(storetest.ZhangID, 904)); got != "" || !strings.Contains(why, "#2") || !strings.Contains(why, "#3") {
		t.Errorf("without a number while two wait: %q, %q", got, why)
	}
	press := approval.Request{State: sessions.ApprovalRejected, Turn: turn, Event: 905, Person: "boss", Admin: true}
	if got := w.decide(press); got != "2 x__two rejected;3 x__three rejected;" {
		t.Errorf("the button of an administrator decided %q", got)
	}
	unknown := by(storetest.ZhangID, 906)
	unknown.ID = 77
	if why := w.refusal(unknown); !strings.Contains(why, "No call #77") {
		t.Errorf("an unknown number: %q", why)
	}
}

// Without a number a message decides no call that was asked for behind it: its writer has not read that one.
func TestLaterCallsNeedTheirNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := approval.Request{State: sessions.ApprovalApproved, Person: "boss", Admin: true, Event: 900}
	before.At = time.Now().Add(-time.Minute)
	w.ask(time.Hour, "x__later")
	if got, why := w.decide(before), w.refusal(before); got != "" || !strings.Contains(why, "#1 `x__later`") {
		t.Errorf("a message before the call decided %q, with the words %q", got, why)
	}
	before.ID = 1
	if got := w.decide(before); got != "1 x__later approved;" {
		t.Errorf("with the number it decided %q", got)
	}
}

// One of several decisions at the same time counts.
func TestDecideOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(time.Hour, "x__one")
	var all sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		all.Go(func() { got[i] = w.decide(by(storetest.ZhangID, int64(950+i))) })
	}
	all.Wait()
	if n := strings.Count(strings.Join(got, ""), "approved"); n != 1 {
		t.Errorf("%d messages decided: %q", n, got)
	}
}

// A call expires once, with a message of its asker, and can't be approved from its time on.
func TestExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(time.Millisecond, "x__one")
	w.ask(time.Hour, "x__two")
	first := by(storetest.ZhangID, 900)
	first.ID = 1
	if got, why := w.decide(first), w.refusal(first); got != "" || !strings.Contains(why, "#1 has expired") {
		t.Errorf("an overdue call: %q, %q", got, why)
	}
	stored, ended := 0, 0
	x := &approval.Expiry{
		Desk: w.desk, Replica: w.Lease.Owner, Leads: leads, Languages: wording.Languages{Preset: "zh", Assigned: unassigned},
		Accepted: func(sessions.Accepted) { stored++ }, Expired: func() { ended++ },
	}
	for range 2 {
		if err := x.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pending := storetest.Must[[]sessions.Event](t)(w.Store.Inbox.Pending(t.Context(), w.Lease.Key, 10))
	if stored != 1 || ended != 1 || len(pending) != 1 || pending[0].SenderID != storetest.ZhangID || !strings.Contains(pending[0].Content, "#1 x__one") {
		t.Errorf("%d messages, waiting are %+v", stored, pending)
	}
	if got := w.decide(by(storetest.ZhangID, 901)); got != "2 x__two approved;" {
		t.Errorf("the other call: %q", got)
	}
}

// At most ten calls wait. The same one of the same person waits once, and a number is never used again.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range sessions.MaxApprovals {
		w.ask(time.Hour, fmt.Sprint("x__", i))
	}
	waiting := storetest.Must[approval.Waiting](t)(w.desk.Waiting(t.Context(), w.Lease.Key))
	if _, ok := waiting.Add(sessions.Approval{}); ok {
		t.Error("an eleventh call waits")
	}
	same := sessions.ToolCall{Name: "x__3", Arguments: "{}"}
	if a, ok := waiting.Find(same, storetest.ZhangID); !ok || a.ID != 4 {
		t.Errorf("the same call is %+v, %t", a, ok)
	}
	if _, ok := waiting.Find(same, storetest.LiID); ok {
		t.Error("the call of another person is the same")
	}
	storetest.ForgetZhang(t, w.Store)
	waiting = storetest.Must[approval.Waiting](t)(w.desk.Waiting(t.Context(), w.Lease.Key))
	if a, ok := waiting.Add(sessions.Approval{}); !ok || a.ID != sessions.MaxApprovals+1 {
		t.Errorf("after an erasure the next call is %d, %t", a.ID, ok)
	}
	all := approval.Request{State: sessions.ApprovalApproved, Person: "boss", Admin: true, Event: 900}
	for all.ID = 1; all.ID <= sessions.MaxApprovals; all.ID++ {
		if got := w.decide(all); got != "" {
			t.Errorf("an erased call was approved: %s", got)
		}
	}
}

// A deleted conversation begins its numbers again. Its messages may not come again, but the end of a new call's wait is another message.
func TestExpiryAfterADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := &approval.Expiry{
		Desk: w.desk, Replica: w.Lease.Owner, Leads: leads, Languages: wording.Languages{Preset: "zh", Assigned: unassigned}, Accepted: func(sessions.Accepted) {}, Expired: func() {},
	}
	for i := range 2 {
		if i > 0 {
			if _, err := w.Store.Erasure.Delete(t.Context(), w.Lease.Key); err != nil {
				t.Fatal(err)
			}
		}
		w.ask(time.Duration(i+1)*time.Microsecond, "x__one")
		if err := x.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		pending := storetest.Must[[]sessions.Event](t)(w.Store.Inbox.Pending(t.Context(), w.Lease.Key, 10))
		if len(pending) != 1 || !strings.Contains(pending[0].Content, "#1 x__one") {
			t.Errorf("deletion %d: waiting are %+v", i, pending)
		}
	}
}

// stuck has due calls, of which the first ones can't end.
type stuck struct {
	sessions.Approvals

	due     []sessions.Approval
	failing int64
}

func (s *stuck) CountApprovals(context.Context) (int, error) { return len(s.due), nil }

func (s *stuck) DueApprovals(_ context.Context, after sessions.Approval, limit int) ([]sessions.Approval, error) {
	at := slices.IndexFunc(s.due, func(a sessions.Approval) bool { return a.ID > after.ID })
	if at < 0 {
		return nil, nil
	}
	return slices.Clone(s.due[at:min(len(s.due), at+limit)]), nil
}

func (s *stuck) ExpireApproval(_ context.Context, _ sessions.ReplicaID, a sessions.Approval, _ func(sessions.Message) sessions.Message) (sessions.Accepted, error) {
	if a.ID <= s.failing {
		return sessions.Accepted{}, sessions.ErrRefused
	}
	s.due = slices.DeleteFunc(s.due, func(d sessions.Approval) bool { return d.ID == a.ID })
	return sessions.Accepted{}, nil
}

// Hundreds of waits that can't end hold up no other, and are tried again.
func TestExpiryPassesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &stuck{failing: 250}
		for id := range int64(400) {
			store.due = append(store.due, sessions.Approval{ID: id + 1})
		}
		x := &approval.Expiry{Desk: &approval.Desk{Store: store, Wait: time.Hour, Location: time.UTC}, Leads: leads, Expired: func() {}}
		for range 5 {
			_ = x.Run(t.Context()) // it names a failure
		}
		if len(store.due) != 250 {
			t.Errorf("%d waits are left, want the 250 that can't end", len(store.due))
		}
		store.failing = 0
		for range 10 {
			if err := x.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second) // by the clock of the bubble: a figure is at most this old
		if err := x.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(store.due) != 0 || x.Waiting() != 0 {
			t.Errorf("%d waits are left, %d by the figure", len(store.due), x.Waiting())
		}
	})
}
