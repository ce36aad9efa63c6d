package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/wording"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

// A repeated /forget me after a half-done erasure confirms it. The script takes the receipt of either command.
func TestErasureScriptAsksAgain(t *testing.T) {
	t.Parallel()
	half, receipt := wording.Say(wording.ForgetHalf, "zh"), wording.Say(wording.PersonForgotten, "zh", "2 条消息")
	preview := wording.Say(wording.ForgetMe, "zh", "2 条消息")
	for name, replies := range map[string][]string{
		"confirmed by the first command":  {half, receipt},
		"confirmed by a second one":       {half, preview, receipt},
		"half done again":                 {half, half, half, receipt},
		"nothing to confirm any more":     {wording.Say(wording.NotAsked, "zh"), preview, receipt},
		"the storage failed at a preview": {half, wording.Say(wording.NoRights, "zh"), half, receipt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(zerolog.Nop().WithContext(t.Context()), time.Minute)
			defer stop()
			sim, asked := answeringBot(t, ctx, replies)
			w := injector{&world{sim: sim, talk: newChaosTalk(ctx, sim, rand.New(rand.NewPCG(1, 1)), false, false)}}
			defer w.talk.close()
			who := rig.Person{ID: "u-script-0001", Name: "访客0001"}
			ask := eraseRequest{who: who, place: dingtalktest.DirectConversation(who.ID), command: "/忘记我"}
			x := w.erasures.beginRequest(erasure{kind: "forget me"})
			if err := w.confirmErasure(ctx, x, ask); err != nil {
				t.Fatal(err)
			}
			if x.receipt.IsZero() {
				t.Error("the receipt is not recorded")
			}
			if commands := asked(); len(commands) != len(replies) || commands[0] != "/忘记我 确认" || commands[1] != "/忘记我" {
				t.Errorf("sent are %q, want a command for each of %d replies", commands, len(replies))
			}
		})
	}
}

// answeringBot answers the messages of a simulated DingTalk in order. asked lists their texts.
func answeringBot(t *testing.T, ctx context.Context, replies []string) (sim *dingtalktest.Server, asked func() []string) {
	t.Helper()
	sim = dingtalktest.NewServer(t, dingtalktest.Options{})
	tr, err := dingtalk.New(dingtalk.Config{ClientID: "dingsimapp0001", ClientSecret: "sim-secret", APIBase: sim.URL, OAPIBase: sim.URL})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var texts []string
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	running.Go(func() {
		_ = tr.Run(ctx, func(ctx context.Context, m sessions.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if texts = append(texts, m.Text); len(texts) > len(replies) {
				return nil
			}
			_, err := tr.Send(ctx, sessions.Outgoing{Reply: sessions.Reply{Text: replies[len(texts)-1], Target: sessions.Target{
				ConversationID: m.ConversationID, ConversationType: m.ConversationType, Webhook: m.Webhook,
			}}})
			return err
		})
	})
	if err := sim.WaitConns(ctx, 1); err != nil {
		t.Fatal(err)
	}
	return sim, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(texts)
	}
}
