package approvals_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func open(t *testing.T) (*storetest.Chat, *pgxpool.Pool) {
	t.Helper()
	s, pool := storetest.Open(t, sqltest.URL(t))
	return storetest.NewChat(t, s, "cid", storetest.ZhangID, false), pool
}

// ask commits a turn with a call that waits, and returns its message.
func ask(t *testing.T, c *storetest.Chat, id int64, wait time.Duration) sessions.Accepted {
	t.Helper()
	said := c.Speak(fmt.Sprint("ask", id), storetest.ZhangID, storetest.ZhangNick, "please", nil)
	storetest.Must[sessions.Committed](t)(c.Store.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
		Taken: []int64{said.EventID}, TakenTokens: []int{1}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "waits"}},
		Waits: []sessions.Approval{{
			ID: id, EventID: said.EventID, Tool: "x__y", Arguments: `{"text":"` + storetest.Secret + `"}`, AskedBy: storetest.ZhangID, Wait: wait,
			Webhook: "https://example.com/hook", WebhookExpires: time.Now().Add(2 * time.Hour),
		}},
	}))
	return said
}

func audit(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return strings.Join(storetest.Collect(t, pool, "SELECT action || ' ' || actor || ' ' || detail FROM audit ORDER BY id", func(r pgx.CollectableRow) (s string, err error) {
		return s, r.Scan(&s)
	}), "\n")
}

// The audit has each step of a call, with a hash of its arguments in place of them. A decided call keeps no webhook.
func TestStepsAreInTheAudit(t *testing.T) {
	t.Parallel()
	c, pool := open(t)
	ask(t, c, 1, time.Hour)
	ask(t, c, 2, time.Hour)
	ask(t, c, 3, time.Microsecond)
	if n := storetest.Number(t, pool, "SELECT count(*) FROM approvals WHERE webhook <> '' AND webhook_expires > now()"); n != 3 {
		t.Errorf("%d waiting calls have the webhook of their question, want 3", n)
	}
	said := c.Speak("decision", "boss", "老板", "/approve 1", nil)
	for id, state := range map[int64]sessions.ApprovalState{1: sessions.ApprovalApproved, 2: sessions.ApprovalRejected} {
		storetest.Must[[]sessions.Approval](t)(c.Store.Approvals.DecideApprovals(t.Context(), c.Lease, sessions.Decision{IDs: []int64{id}, State: state, By: "boss", Event: said.EventID}))
	}
	due := storetest.Must[[]sessions.Approval](t)(c.Store.Approvals.DueApprovals(t.Context(), sessions.Approval{}, 10))
	if len(due) != 1 || due[0].Webhook == "" {
		t.Fatalf("due are %+v", due)
	}
	storetest.Must[sessions.Accepted](t)(c.Store.Approvals.ExpireApproval(t.Context(), c.Lease.Owner, due[0], func(m sessions.Message) sessions.Message {
		m.ID = "expired"
		return m
	}))
	got := audit(t, pool)
	for _, part := range []string{"ask_call " + string(storetest.ZhangID) + " #1 x__y", "approve_call boss #1 x__y", "reject_call boss #2 x__y", "expire_call  #3 x__y", due[0].ArgumentsHash()} {
		if !strings.Contains(got, part) {
			t.Errorf("the audit lacks %q:\n%s", part, got)
		}
	}
	if strings.Contains(got, storetest.Secret) {
		t.Errorf("the audit has arguments:\n%s", got)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM approvals WHERE webhook <> '' OR webhook_expires IS NOT NULL"); n != 0 {
		t.Errorf("%d ended calls have a webhook", n)
	}
}

// Two people decide at once, and one of them does.
func TestDecisionsAtOnce(t *testing.T) {
	t.Parallel()
	c, pool := open(t)
	ask(t, c, 1, time.Hour)
	said := c.Speak("decision", "boss", "老板", "/approve", nil)
	var all sync.WaitGroup
	decided := make([]int, 8)
	for i := range decided {
		state := []sessions.ApprovalState{sessions.ApprovalApproved, sessions.ApprovalRejected}[i%2]
		all.Go(func() {
			done, err := c.Store.Approvals.DecideApprovals(t.Context(), c.Lease, sessions.Decision{IDs: []int64{1}, State: state, By: "boss", Event: said.EventID})
			if err != nil {
				t.Error(err)
			}
			decided[i] = len(done)
		})
	}
	all.Wait()
	sum := 0
	for _, n := range decided {
		sum += n
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM audit WHERE action IN ('approve_call', 'reject_call')"); sum != 1 || n != 1 {
		t.Errorf("%d decisions, %d rows of the audit, want one", sum, n)
	}
}

// The wait of a call whose question is gone ends without a message: it would have no destination.
func TestWaitWithoutItsQuestion(t *testing.T) {
	t.Parallel()
	c, pool := open(t)
	said := ask(t, c, 1, time.Microsecond)
	storetest.Execute(t, pool, "DELETE FROM dingtalk_session_events WHERE id = $1", said.EventID)
	due := storetest.Must[[]sessions.Approval](t)(c.Store.Approvals.DueApprovals(t.Context(), sessions.Approval{}, 10))
	if len(due) != 1 {
		t.Fatalf("due are %+v", due)
	}
	done := storetest.Must[sessions.Accepted](t)(c.Store.Approvals.ExpireApproval(t.Context(), c.Lease.Owner, due[0], func(m sessions.Message) sessions.Message {
		t.Error("a message is made")
		return m
	}))
	if done.EventID != 0 || storetest.Number(t, pool, "SELECT count(*) FROM approvals WHERE state = 'expired'") != 1 {
		t.Errorf("got %+v", done)
	}
}
