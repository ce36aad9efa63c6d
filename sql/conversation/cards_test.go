package conversation_test

import (
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/storetest"
)

// A reply that is erased during its delivery may end its card all the same. The card is closed in the background only if
// the outcome stays out.
func TestCardOfAnErasedReply(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	commit := func(track string) sessions.Outgoing {
		t.Helper()
		a := storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
			RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation, ID: sessions.MessageID(track), SenderID: "u", Text: "question",
		}))
		done := storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), a.Lease, sessions.TurnResult{
			Taken: []int64{a.EventID}, TakenTokens: []int{5},
			Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "answer " + track, Tokens: 2}},
			Reply:  &sessions.Reply{Text: "answer " + track, Nonce: track, Target: sessions.Target{Card: track}},
		}))
		storetest.Execute(t, pool, "UPDATE outbox SET state = 'failed', error = 'erased', settled_at = now() WHERE nonce = '"+track+"'")
		return done.Replies[0]
	}
	abandoned := func() (tracks []string) {
		t.Helper()
		for _, one := range storetest.Must[[]sessions.Card](t)(s.Cards.AbandonedCards(t.Context(), sessions.ReplyCard, 0, 10)) {
			tracks = append(tracks, one.Track)
		}
		return tracks
	}
	ended := commit("ended")
	if got := abandoned(); len(got) > 0 {
		t.Errorf("abandoned during the delivery: %v", got)
	}
	if err := s.Outbox.Settle(t.Context(), sessions.SendOutcome{
		Key: c.Reader.Key, ID: ended.ID, Attempt: ended.Attempts, Sent: true, Via: "card", Card: sessions.CardFinished,
	}); err != nil {
		t.Fatal(err)
	}
	commit("silent")
	storetest.Execute(t, pool, "UPDATE outbox SET settled_at = settled_at - interval '4 seconds'")
	if got := abandoned(); len(got) != 1 || got[0] != "silent" {
		t.Errorf("abandoned after a delivery without an outcome: %v, want it alone", got)
	}

	// An open card of a deleted session stays until it is closed, and no row after that.
	if _, err := s.Erasure.Delete(t.Context(), c.Reader.Key); err != nil {
		t.Fatal(err)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM cards"); n != 1 {
		t.Errorf("%d cards are left of the deleted session, want the open one", n)
	}
	if err := s.Cards.SettleCard(t.Context(), c.Reader.Key, "silent", sessions.CardFailed); err != nil {
		t.Fatal(err)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM cards"); n != 0 {
		t.Errorf("%d cards are left after they were closed", n)
	}
	if list := storetest.Must[[]sessions.Card](t)(s.Cards.AbandonedCards(t.Context(), sessions.ReplyCard, time.Hour, 10)); len(list) != 0 {
		t.Errorf("abandoned is %+v", list)
	}
}
