package bot

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// A person over the limit gets one notice in its window, then silence, and no call of the model. Other people and commands
// are served, and the words over the limit are in no later request.
func TestPersonOverTheTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Limits = sessions.Limits{PersonTurns: 1} }})
		say := func(m sessions.Message) {
			w.post(m)
			after(time.Second)
		}
		say(said("m1", "alice", "one"))
		say(said("m2", "alice", "two"))
		say(said("m3", "alice", "three"))
		elsewhere := said("m4", "alice", "four")
		elsewhere.ConversationID = "c2"
		say(elsewhere)
		texts := w.wire.texts()
		if len(texts) != 2 || !strings.Contains(texts[1], "(1 a minute); I answer again after 00:01:00") {
			t.Fatalf("replies are %q, want an answer and one notice with its end", texts)
		}
		if to := w.wire.sends()[1].Reply.Target.Mentions; len(to) != 1 || to[0].StaffID != "u-alice" {
			t.Errorf("the notice mentions %+v", to)
		}
		say(said("m5", "alice", "/status"))
		say(said("m6", "bob", "six"))
		want(t, "replies with a command and another person", len(w.wire.sends()), 4)
		want(t, "model calls", len(w.model.requests("chat")), 2)
		for _, m := range w.model.requests("chat")[1].Messages {
			if strings.Contains(m.Content, "two") || strings.Contains(m.Content, "a minute") {
				t.Errorf("the request has %q", m.Content)
			}
		}
		for _, e := range w.store.mem.Events(t.Context(), group) {
			if e.State == sessions.Pending {
				t.Errorf("%q waits", e.Content)
			}
		}
		after(time.Minute)
		say(said("m7", "alice", "seven"))
		want(t, "replies in the next window", len(w.wire.sends()), 5)
		say(said("m8", "alice", "eight"))
		want(t, "notices of the next window", len(w.wire.sends()), 6)
	})
}

// Messages that wait together are divided: people below the limit are answered, and the others get one notice.
func TestMergedTurnOverTheTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		model := &script{chat: func(context.Context, llm.Request) (llm.Response, error) { <-release; return text("done"), nil }}
		w := start(t, setup{model: model, config: func(c *Config) { c.Limits = sessions.Limits{PersonTurns: 1} }})
		w.post(said("m1", "alice", "one"))
		after(time.Second)
		for _, m := range []sessions.Message{said("m2", "alice", "two"), said("m3", "bob", "three"), said("m4", "alice", "four"), said("m5", "carol", "five")} {
			w.post(m)
		}
		close(release)
		after(2 * time.Second)
		sends := w.wire.sends()
		if len(sends) != 3 {
			t.Fatalf("replies are %q, want two answers and a notice", w.wire.texts())
		}
		for i, names := range []string{"alice", "bob carol", "alice"} {
			var mentioned []string
			for _, m := range sends[i].Reply.Target.Mentions {
				mentioned = append(mentioned, m.Nick)
			}
			want(t, "mentioned", strings.Join(mentioned, " "), names)
		}
		want(t, "model calls", len(model.requests("chat")), 2)
	})
}

// The limits of a group, of a person's tokens and of the installation's tokens.
func TestOtherLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits sessions.Limits
		notice string
		wait   time.Duration
	}{
		"group":  {sessions.Limits{GroupTurns: 1}, "This conversation has used its questions", time.Minute},
		"person": {sessions.Limits{PersonTokens: 10}, "You have used your allowance of the day (10 tokens); I answer again after 01-02 00:00", 24 * time.Hour},
		"all":    {sessions.Limits{Tokens: 10}, "for all conversations is used up; I answer again after 01-02 00:00", 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := &script{chat: func(context.Context, llm.Request) (llm.Response, error) {
					r := text("done")
					r.Usage = sessions.Usage{Prompt: 8, Completion: 3}
					return r, nil
				}}
				w := start(t, setup{model: model, config: func(c *Config) { c.Limits = tt.limits }})
				for _, m := range []sessions.Message{said("m1", "alice", "one"), said("m2", "alice", "two"), said("m3", "alice", "three")} {
					w.post(m)
					after(time.Second)
				}
				if texts := w.wire.texts(); len(texts) != 2 || !strings.Contains(texts[1], tt.notice) {
					t.Fatalf("replies are %q, want an answer and %q", texts, tt.notice)
				}
				want(t, "model calls", len(model.requests("chat")), 1)
				after(tt.wait)
				w.post(said("m4", "alice", "four"))
				after(time.Second)
				want(t, "model calls in the next window", len(model.requests("chat")), 2)
			})
		})
	}
}
