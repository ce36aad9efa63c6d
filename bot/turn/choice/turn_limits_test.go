package choice_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// A person over the limit gets one notice in its window, then silence, and no call of the model. Other people and commands
// are served, and the words over the limit are in no later request.
func TestPersonOverTheTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Limits = sessions.Limits{PersonTurns: 1} }})
		say := func(m sessions.Message) {
			w.Post(m)
			bottest.After(time.Second)
		}
		say(bottest.Said("m1", "alice", "one"))
		say(bottest.Said("m2", "alice", "two"))
		say(bottest.Said("m3", "alice", "three"))
		elsewhere := bottest.Said("m4", "alice", "four")
		elsewhere.ConversationID = "c2"
		say(elsewhere)
		texts := w.Wire.Texts()
		if len(texts) != 2 || !strings.Contains(texts[1], "(1 a minute); I answer again after 00:01:00") {
			t.Fatalf("replies are %q, want an answer and one notice with its end", texts)
		}
		if to := w.Wire.Sends()[1].Reply.Target.Mentions; len(to) != 1 || to[0].StaffID != "u-alice" {
			t.Errorf("the notice mentions %+v", to)
		}
		say(bottest.Said("m5", "alice", "/status"))
		say(bottest.Said("m6", "bob", "six"))
		bottest.Want(t, "replies with a command and another person", len(w.Wire.Sends()), 4)
		bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 2)
		for _, m := range w.Model.Requests("chat")[1].Messages {
			if strings.Contains(m.Content, "two") || strings.Contains(m.Content, "a minute") {
				t.Errorf("the request has %q", m.Content)
			}
		}
		for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
			if e.State == sessions.Pending {
				t.Errorf("%q waits", e.Content)
			}
		}
		bottest.After(time.Minute)
		say(bottest.Said("m7", "alice", "seven"))
		bottest.Want(t, "replies in the next window", len(w.Wire.Sends()), 5)
		say(bottest.Said("m8", "alice", "eight"))
		bottest.Want(t, "notices of the next window", len(w.Wire.Sends()), 6)
	})
}

// Messages that wait together are divided: people below the limit are answered, and the others get one notice.
func TestMergedTurnOverTheTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		model := &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) { <-release; return bottest.Text("done"), nil }}
		w := bottest.Start(t, bottest.Setup{Model: model, Config: func(c *bot.Config) { c.Limits = sessions.Limits{PersonTurns: 1} }})
		w.Post(bottest.Said("m1", "alice", "one"))
		bottest.After(time.Second)
		for _, m := range []sessions.Message{bottest.Said("m2", "alice", "two"), bottest.Said("m3", "bob", "three"), bottest.Said("m4", "alice", "four"), bottest.Said("m5", "carol", "five")} {
			w.Post(m)
		}
		close(release)
		bottest.After(2 * time.Second)
		sends := w.Wire.Sends()
		if len(sends) != 3 {
			t.Fatalf("replies are %q, want two answers and a notice", w.Wire.Texts())
		}
		for i, names := range []string{"alice", "bob carol", "alice"} {
			var mentioned []string
			for _, m := range sends[i].Reply.Target.Mentions {
				mentioned = append(mentioned, m.Nick)
			}
			bottest.Want(t, "mentioned", strings.Join(mentioned, " "), names)
		}
		bottest.Want(t, "model calls", len(model.Requests("chat")), 2)
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
				model := &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) {
					r := bottest.Text("done")
					r.Usage = sessions.Usage{Prompt: 8, Completion: 3}
					return r, nil
				}}
				w := bottest.Start(t, bottest.Setup{Model: model, Config: func(c *bot.Config) { c.Limits = tt.limits }})
				for _, m := range []sessions.Message{bottest.Said("m1", "alice", "one"), bottest.Said("m2", "alice", "two"), bottest.Said("m3", "alice", "three")} {
					w.Post(m)
					bottest.After(time.Second)
				}
				if texts := w.Wire.Texts(); len(texts) != 2 || !strings.Contains(texts[1], tt.notice) {
					t.Fatalf("replies are %q, want an answer and %q", texts, tt.notice)
				}
				bottest.Want(t, "model calls", len(model.Requests("chat")), 1)
				bottest.After(tt.wait)
				w.Post(bottest.Said("m4", "alice", "four"))
				bottest.After(time.Second)
				bottest.Want(t, "model calls in the next window", len(model.Requests("chat")), 2)
			})
		})
	}
}

// A turn counts the tokens of all its askers at once.
func TestTokensOfAMergedTurnAreCountedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := bottest.Text("fine")
		answered.Usage = sessions.Usage{Prompt: 900, Completion: 100}
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Rounds(answered, answered)}, Config: func(c *bot.Config) { c.Limits = sessions.Limits{PersonTokens: 5000} }})
		people := []string{"alice", "bob", "carol"}
		for i, who := range people {
			w.Post(bottest.Said(fmt.Sprint("m", i), who, "hello"))
		}
		bottest.After(time.Second)
		bottest.Want(t, "turns", w.Store.Called("commit"), 1)
		bottest.Want(t, "writes", w.Store.Called("spend"), 1)
		total := 0
		for _, who := range people {
			u, err := w.Store.Mem.Limits.Used(t.Context(), sessions.Askers{Robot: "robot", People: []sessions.UserID{sessions.UserID("u-" + who)}})
			if err != nil || u.PersonTokens.Count == 0 {
				t.Errorf("%s used %+v, %v", who, u.PersonTokens, err)
			}
			total += u.PersonTokens.Count
		}
		bottest.Want(t, "tokens", total, 1000)
	})
}

// Askers read their own use of the configured limits, the rest, and the end of a running window. Another person's use
// shows only in the sums of the group and the installation.
func TestUsageOfLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := bottest.Text("fine")
		answered.Usage = sessions.Usage{Prompt: 900, Completion: 100}
		all := sessions.Limits{PersonTurns: 3, GroupTurns: 5, PersonTokens: 1500, Tokens: 1800}
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Rounds(answered, answered)}, Config: func(c *bot.Config) { c.Limits = all }})
		limits := func(id, who, command string, kind sessions.ConversationType) string {
			m := bottest.Said(id, who, command)
			if kind == sessions.Private {
				m.ConversationType, m.ConversationID = kind, "p1"
			}
			w.Post(m)
			bottest.After(time.Second)
			texts := w.Wire.Texts()
			_, own, _ := strings.Cut(texts[len(texts)-1], "imits")
			return own
		}
		bottest.Want(t, "/whoami", limits("m1", "alice", "/whoami", sessions.Group), ":\n- your questions in a minute: 3\n"+
			"- questions of this group in a minute: 5\n- your tokens in a day of UTC: 1,500\n- tokens of all conversations in a day of UTC: 1,800\n")
		w.Say("m2", "alice", "hello")
		w.Say("m3", "bob", "hello")
		const minute, day = "; the window ends at 00:01:01\n", "; the window ends at 01-02 00:00\n"
		bottest.Want(t, "/usage", limits("m4", "alice", "/usage", sessions.Group), " here:\n"+
			"- your questions in a minute: 1 of 3 used, 2 left"+minute+
			"- questions of this group in a minute: 2 of 5 used, 3 left"+minute+
			"- your share of them beside the others: 1 of 4 used, 3 left"+minute+
			"- your tokens in a day of UTC: 1,000 of 1,500 used, 500 left"+day+
			"- tokens of all conversations in a day of UTC: 2,000 of 1,800 used, 0 left"+day+
			"- your share of them beside the others: 1,000 of 800 used, 0 left"+day)
		private := " here:\n- your questions in a minute: 0 of 3 used, 3 left\n- your tokens in a day of UTC: 0 of 1,500 used, 1,500 left\n" +
			"- tokens of all conversations in a day of UTC: 2,000 of 1,800 used, 0 left" + day
		bottest.Want(t, "/usage of a person without a turn, in private", limits("m5", "carol", "/usage", sessions.Private), private)
		bottest.After(time.Minute)
		bottest.Want(t, "/usage after the minute", strings.Contains(limits("m6", "bob", "/usage", sessions.Group), "in a minute: 0 of 3 used, 3 left\n"), true)

		values := w.Values
		values.Limits = sessions.Limits{GroupTurns: 2}
		if err := w.Bot.Reload(values); err != nil {
			t.Fatal(err)
		}
		w.Say("m7", "alice", "/用量")
		if got := w.Last().Reply.Text; !strings.HasSuffix(got, "你在这里的限额：\n- 这个群每分钟的提问：已用 0 / 2，剩 2\n") {
			t.Errorf("after a reload the usage is %q, want the group's limit alone", got)
		}
		bottest.Want(t, "/whoami in private, without a limit there", limits("m8", "alice", "/whoami", sessions.Private), "")
	})
}

// A question is counted once, with its group and its tokens, whatever cut its first attempts: a death of the process, or a
// stop. Another person's question that is answered with it is counted too.
func TestRepeatedTurnsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*bottest.World){
		"a death": func(w *bottest.World) { w.Kill() },
		"a stop":  func(w *bottest.World) { w.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shelf := bottest.NewShelf()
				limits := func(c *bot.Config) { c.Limits = sessions.Limits{PersonTurns: 1, GroupTurns: 1, PersonTokens: 15} }
				used := func(ctx context.Context, r llm.Request) (llm.Response, error) {
					resp, err := bottest.Hang(ctx, r)
					resp.Usage = sessions.Usage{Prompt: 100}
					return resp, err
				}
				for i := range 2 {
					w := bottest.Start(t, bottest.Setup{Name: sessions.ReplicaID(fmt.Sprint("r", i)), Shelf: shelf, Config: limits, Model: &bottest.Script{Chat: used}})
					if i == 0 {
						w.Post(bottest.Said("m1", "alice", "one"))
					}
					bottest.After(6 * time.Second)
					bottest.Want(t, "requests", len(w.Model.Requests("chat")), 1)
					cut(w)
				}
				answer := bottest.Text("done")
				answer.Usage = sessions.Usage{Prompt: 10}
				w := bottest.Start(t, bottest.Setup{Name: "last", Shelf: shelf, Config: limits, Model: &bottest.Script{Chat: bottest.Rounds(answer, answer)}})
				w.Post(bottest.Said("m2", "bob", "two"))
				bottest.After(7 * time.Second)
				a := sessions.Askers{Robot: "robot", Group: "c1", People: []sessions.UserID{"u-alice"}}
				u, err := shelf.Mem.Limits.Used(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				bottest.Want(t, "turns of the person", u.PersonTurns.Count, 1)
				bottest.Want(t, "turns of the group", u.GroupTurns.Count, 1)
				if u.PersonTokens.Count > 10 {
					t.Errorf("the person used %d tokens, want those of one answer", u.PersonTokens.Count)
				}
				bottest.Want(t, "the first reply", w.Wire.Texts()[0], "done")
				w.Post(bottest.Said("m3", "alice", "three"))
				bottest.After(time.Second)
				if texts := w.Wire.Texts(); !strings.Contains(texts[len(texts)-1], "a minute") {
					t.Errorf("the next question is answered with %q, want a notice of the limit", texts)
				}
			})
		})
	}
}
