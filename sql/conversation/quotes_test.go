package conversation_test

import (
	"errors"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/storetest"
)

// A reply that a rate limit delayed is known by the time when it was sent, among answers that were committed later.
func TestQuotedAnswerIsTheOneSentThen(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	answered := func(id, text string, ago time.Duration) int64 {
		asked := c.Speak(id, storetest.LiID, "李娜", "会议", nil)
		done := storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), asked.Lease, sessions.TurnResult{
			Taken: []int64{asked.EventID}, TakenTokens: []int{1}, ReplyWaits: true,
			Events: []sessions.Event{
				{Role: sessions.RoleAssistant, Content: "我查一下", ToolCalls: []sessions.ToolCall{{ID: "c", Name: "n", Arguments: "{}"}}},
				{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "n", Content: "周三"},
				{Role: sessions.RoleAssistant, Content: text, Tokens: 1},
			},
			Reply: &sessions.Reply{Text: text, Nonce: id},
		}))
		storetest.Execute(t, pool, `WITH o AS (SELECT created_at FROM outbox WHERE id = $1),
			e AS (UPDATE dingtalk_session_events SET created_at = now() - $2::interval FROM o WHERE dingtalk_session_events.created_at = o.created_at)
			UPDATE outbox SET created_at = now() - $2::interval WHERE id = $1`, done.Replies[0].ID, ago)
		return done.Replies[0].ID
	}
	sent := func(reply int64, ago time.Duration) {
		if err := s.Outbox.Settle(t.Context(), sessions.SendOutcome{Key: c.Reader.Key, ID: reply, Sent: true}); err != nil {
			t.Fatal(err)
		}
		storetest.Execute(t, pool, "UPDATE outbox SET settled_at = now() - $2::interval WHERE id = $1", reply, ago)
	}
	at := func(ago time.Duration) (sessions.Event, error) {
		return s.Turns.Quoted(t.Context(), c.Reader.Key, sessions.Quote{FromBot: true, SentAt: time.Now().Add(-ago)})
	}

	delayed := answered("l1", "会议在周三", 6*time.Minute)
	sent(delayed, 5*time.Minute)
	waits := answered("l2", "发布在周五", 5*time.Minute+20*time.Second)
	if e, err := at(5 * time.Minute); err != nil || e.Content != "会议在周三" {
		t.Errorf("a reply that was sent a minute after its commit is %q (%v)", e.Content, err)
	}
	sent(waits, time.Minute)
	if e, err := at(time.Minute); err != nil || e.Content != "发布在周五" {
		t.Errorf("the reply that waited for four minutes is %q (%v)", e.Content, err)
	}
	if e, err := at(5 * time.Minute); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("one of two replies that may have been sent at a time is %q (%v)", e.Content, err)
	}
	storetest.Execute(t, pool, "UPDATE outbox SET in_flight = true WHERE id = $1", answered("l3", "预算已批准", 0))
	if e, err := at(0); err != nil || e.Content != "预算已批准" {
		t.Errorf("the reply that is being sent is %q (%v)", e.Content, err)
	}
}
