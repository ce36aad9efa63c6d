package bot_test

import (
	"context"
	"testing"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions/llm"
)

// A stop that another replica receives ends the turn where it runs. The session keeps its owner, and nothing is repeated.
func TestStopByAnotherReplica(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	asked := make(chan struct{}, 1)
	a := p.run("a", func(r *replica, _ *bot.Config) {
		speak := bottest.Halfway("slow", "half")
		r.model.Chat = func(ctx context.Context, q llm.Request) (llm.Response, error) {
			asked <- struct{}{}
			return speak(ctx, q)
		}
	})
	b := p.run("b", nil)
	a.post(bottest.Said("m1", "alice", "a slow question"))
	receive(t, asked)
	b.post(bottest.Said("m2", "alice", "/停止"))
	a.settle()
	bottest.Want(t, "what the owner sent", a.wire.Texts(), []string{
		"half\n\n" + wording.Say(wording.TurnStopped, "zh", "a slow question"),
	})
	bottest.Want(t, "what the other sent", len(b.wire.Texts()), 0)
	db := p.db()
	bottest.Want(t, "owner and term", one[string](t, db, "SELECT lease_owner || lease_term FROM dingtalk_sessions"), "a1")
	bottest.Want(t, "events", one[string](t, db, "SELECT string_agg(seq || role || ' ' || attempts, ', ' ORDER BY seq) FROM dingtalk_session_events"),
		"1user 0, 2assistant 0, 3user 0")
	if n := one[int](t, db, "SELECT sum(prompt_tokens) FROM model_usage WHERE kind = 'turn'"); n == 0 {
		t.Error("the stopped call is not counted")
	}
}
