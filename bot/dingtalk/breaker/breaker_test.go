package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/dingtalk/breaker"
	"ebb/sessions"
)

func check(t *testing.T, b *breaker.Breaker, when string, want map[sessions.ConversationID]bool) {
	t.Helper()
	for c, paused := range want {
		if got := b.Paused(c); got != paused {
			t.Errorf("%s: %s is paused: %t", when, c, got)
		}
	}
}

// The silence of one conversation is its own until another one has no answer either. After each pause one conversation tries.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New()
		for range 3 { // calls that are under way together count once
			b.Unanswered("a")
		}
		check(t, b, "after one silence", map[sessions.ConversationID]bool{"a": true, "b": false})
		if b.Down() || !b.Silent("a") || b.Silent("b") {
			t.Error("one conversation is everybody's fault")
		}
		time.Sleep(time.Minute)
		check(t, b, "after its pause", map[sessions.ConversationID]bool{"a": false})
		if d, all := b.Unanswered("a"); d != 2*time.Minute || all {
			t.Errorf("the second silence of a conversation pauses %s, all %t", d, all)
		}
		if d, all := b.Unanswered("b"); d != time.Minute || !all {
			t.Errorf("the silence of a second conversation pauses %s, all %t", d, all)
		}
		check(t, b, "while it is open", map[sessions.ConversationID]bool{"a": true, "b": true, "c": true})
		if !b.Down() || !b.Silent("c") {
			t.Error("the breaker is not open")
		}
		time.Sleep(2 * time.Minute)
		check(t, b, "after the pause", map[sessions.ConversationID]bool{"c": false})
		check(t, b, "beside the trial", map[sessions.ConversationID]bool{"c": false, "d": true})
		if b.Silent("c") || !b.Silent("d") {
			t.Error("the trial is kept from its end, or others are not")
		}
		if d, all := b.Unanswered("c"); d != 2*time.Minute || !all {
			t.Errorf("a failed trial pauses %s, all %t", d, all)
		}
		time.Sleep(2 * time.Minute)
		check(t, b, "the next trial", map[sessions.ConversationID]bool{"e": false})
		b.Answered("e")
		check(t, b, "after an answer", map[sessions.ConversationID]bool{"d": false, "e": false, "f": false})
	})
}

// A refusal pauses its conversation, a failure of the application pauses all.
func TestRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New()
		b.Close("a", time.Hour)
		b.Answered("a")
		check(t, b, "after a refusal", map[sessions.ConversationID]bool{"a": true, "b": false})
		b.CloseAll(10 * time.Minute)
		check(t, b, "after a failure of the application", map[sessions.ConversationID]bool{"b": true})
		if b.Silent("b") || b.Down() || !b.MayTry("b") {
			t.Error("a failure of the application is taken for silence")
		}
		time.Sleep(10 * time.Minute)
		check(t, b, "afterwards", map[sessions.ConversationID]bool{"a": true, "b": false})
		time.Sleep(50 * time.Minute)
		check(t, b, "an hour later", map[sessions.ConversationID]bool{"a": false})
	})
}
