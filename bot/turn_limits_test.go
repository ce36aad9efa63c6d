package bot

import (
	"context"
	"fmt"
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

// A turn counts the tokens of all its askers at once.
func TestTokensOfAMergedTurnAreCountedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := text("fine")
		answered.Usage = sessions.Usage{Prompt: 900, Completion: 100}
		w := start(t, setup{model: &script{chat: rounds(answered, answered)}, config: func(c *Config) { c.Limits = sessions.Limits{PersonTokens: 5000} }})
		people := []string{"alice", "bob", "carol"}
		for i, who := range people {
			w.post(said(fmt.Sprint("m", i), who, "hello"))
		}
		after(time.Second)
		want(t, "turns", w.store.called("commit"), 1)
		want(t, "writes", w.store.called("spend"), 1)
		total := 0
		for _, who := range people {
			u, err := w.store.mem.Used(t.Context(), sessions.Askers{Robot: "robot", People: []sessions.UserID{sessions.UserID("u-" + who)}})
			if err != nil || u.PersonTokens.Count == 0 {
				t.Errorf("%s used %+v, %v", who, u.PersonTokens, err)
			}
			total += u.PersonTokens.Count
		}
		want(t, "tokens", total, 1000)
	})
}

// Askers read their own use of the configured limits, the rest, and the end of a running window. Another person's use
// shows only in the sums of the group and the installation.
func TestUsageOfLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := text("fine")
		answered.Usage = sessions.Usage{Prompt: 900, Completion: 100}
		all := sessions.Limits{PersonTurns: 3, GroupTurns: 5, PersonTokens: 1500, Tokens: 1800}
		w := start(t, setup{model: &script{chat: rounds(answered, answered)}, config: func(c *Config) { c.Limits = all }})
		limits := func(id, who, command string, kind sessions.ConversationType) string {
			m := said(id, who, command)
			if kind == sessions.Private {
				m.ConversationType, m.ConversationID = kind, "p1"
			}
			w.post(m)
			after(time.Second)
			texts := w.wire.texts()
			_, own, _ := strings.Cut(texts[len(texts)-1], "imits")
			return own
		}
		want(t, "/whoami", limits("m1", "alice", "/whoami", sessions.Group), ":\n- your questions in a minute: 3\n"+
			"- questions of this group in a minute: 5\n- your tokens in a day of UTC: 1,500\n- tokens of all conversations in a day of UTC: 1,800\n")
		w.say("m2", "alice", "hello")
		w.say("m3", "bob", "hello")
		const minute, day = "; the window ends at 00:01:01\n", "; the window ends at 01-02 00:00\n"
		want(t, "/usage", limits("m4", "alice", "/usage", sessions.Group), " here:\n"+
			"- your questions in a minute: 1 of 3 used, 2 left"+minute+
			"- questions of this group in a minute: 2 of 5 used, 3 left"+minute+
			"- your share of them beside the others: 1 of 4 used, 3 left"+minute+
			"- your tokens in a day of UTC: 1,000 of 1,500 used, 500 left"+day+
			"- tokens of all conversations in a day of UTC: 2,000 of 1,800 used, 0 left"+day+
			"- your share of them beside the others: 1,000 of 800 used, 0 left"+day)
		private := " here:\n- your questions in a minute: 0 of 3 used, 3 left\n- your tokens in a day of UTC: 0 of 1,500 used, 1,500 left\n" +
			"- tokens of all conversations in a day of UTC: 2,000 of 1,800 used, 0 left" + day
		want(t, "/usage of a person without a turn, in private", limits("m5", "carol", "/usage", sessions.Private), private)
		after(time.Minute)
		want(t, "/usage after the minute", strings.Contains(limits("m6", "bob", "/usage", sessions.Group), "in a minute: 0 of 3 used, 3 left\n"), true)

		values := *w.bot.shared.Current.Get()
		values.Limits = sessions.Limits{GroupTurns: 2}
		if err := w.bot.Reload(values); err != nil {
			t.Fatal(err)
		}
		w.say("m7", "alice", "/用量")
		if got := w.last().Reply.Text; !strings.HasSuffix(got, "你在这里的限额：\n- 这个群每分钟的提问：已用 0 / 2，剩 2\n") {
			t.Errorf("after a reload the usage is %q, want the group's limit alone", got)
		}
		want(t, "/whoami in private, without a limit there", limits("m8", "alice", "/whoami", sessions.Private), "")
	})
}

// A question is counted once, with its group and its tokens, whatever cut its first attempts: a death of the process, or a
// stop. Another person's question that is answered with it is counted too.
func TestRepeatedTurnsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*world){
		"a death": func(w *world) { w.kill() },
		"a stop":  func(w *world) { w.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shelf := newShelf()
				limits := func(c *Config) { c.Limits = sessions.Limits{PersonTurns: 1, GroupTurns: 1, PersonTokens: 15} }
				used := func(ctx context.Context, r llm.Request) (llm.Response, error) {
					resp, err := hang(ctx, r)
					resp.Usage = sessions.Usage{Prompt: 100}
					return resp, err
				}
				for i := range 2 {
					w := start(t, setup{name: sessions.ReplicaID(fmt.Sprint("r", i)), shelf: shelf, config: limits, model: &script{chat: used}})
					if i == 0 {
						w.post(said("m1", "alice", "one"))
					}
					after(6 * time.Second)
					want(t, "requests", len(w.model.requests("chat")), 1)
					cut(w)
				}
				answer := text("done")
				answer.Usage = sessions.Usage{Prompt: 10}
				w := start(t, setup{name: "last", shelf: shelf, config: limits, model: &script{chat: rounds(answer, answer)}})
				w.post(said("m2", "bob", "two"))
				after(7 * time.Second)
				a := sessions.Askers{Robot: "robot", Group: "c1", People: []sessions.UserID{"u-alice"}}
				u, err := shelf.mem.Used(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				want(t, "turns of the person", u.PersonTurns.Count, 1)
				want(t, "turns of the group", u.GroupTurns.Count, 1)
				if u.PersonTokens.Count > 10 {
					t.Errorf("the person used %d tokens, want those of one answer", u.PersonTokens.Count)
				}
				want(t, "the first reply", w.wire.texts()[0], "done")
				w.post(said("m3", "alice", "three"))
				after(time.Second)
				if texts := w.wire.texts(); !strings.Contains(texts[len(texts)-1], "a minute") {
					t.Errorf("the next question is answered with %q, want a notice of the limit", texts)
				}
			})
		})
	}
}
