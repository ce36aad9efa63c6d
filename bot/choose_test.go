package bot

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/sessions"
)

// offering has two models.
func offering(c *Config) {
	c.Admins, c.Own = []sessions.UserID{"u-root"}, ownInTests
	c.Models = []llm.Listed{{Name: "main", Price: llm.Price{In: 2, Cached: 0.5, Out: 6}}, {Name: "big"}}
}

// An administrator chooses the model of a conversation by command. The choice is kept with the session beside its other
// settings, survives a restart, and is taken back.
func TestModelByCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: offering})
		n := 0
		answer := func(who, command string) string {
			n++
			w.say(fmt.Sprint("c", n), who, command)
			return w.last().Reply.Text
		}
		asked := func() string {
			answer("alice", "hello there")
			rs := w.model.requests("chat")
			return rs[len(rs)-1].Model
		}
		for _, c := range []struct{ who, command, want, kept, model string }{
			{"alice", "/model", "`main`: a million tokens cost 2 in (0.5 cached), 6 out ← in use here", "", ""},
			{"alice", "/model big", wording.Say(wording.NotAdmin, "en"), "", ""},
			{"root", "/model tiny", `There is no model "tiny"`, "", ""},
			{"root", "/model big small", "Usage: `/model`, `/model NAME`", "", ""},
			{"root", "/压缩 策略 turns", "turns", `{"policy":"turns"}`, ""},
			{"root", "/模型 BIG", wording.Say(wording.ModelSet, "zh", "big"), `{"model":"big","policy":"turns"}`, "big"},
			{"root", "/compact set model main", "want the command /model", `{"model":"big","policy":"turns"}`, "big"},
			{"root", "/compact set a 99", "want 1 to 9", `{"model":"big","policy":"turns"}`, "big"},
			{"alice", "/模型", "`big` ← 这里在用", `{"model":"big","policy":"turns"}`, "big"},
			{"root", "/模型 默认", wording.Say(wording.ModelSet, "zh", "main"), `{"policy":"turns"}`, ""},
			{"root", "/model big", wording.Say(wording.ModelSet, "en", "big"), `{"model":"big","policy":"turns"}`, "big"},
		} {
			if got := answer(c.who, c.command); !strings.Contains(got, c.want) {
				t.Errorf("%s by %s:\n got %s\nwant %s", c.command, c.who, got, c.want)
			}
			want(t, "settings after "+c.command, w.state(group).Settings, c.kept)
			want(t, "policy after "+c.command, w.bot.views.Settings(w.state(group)).Policy.Name == "turns", c.kept != "")
			want(t, "model after "+c.command, asked(), c.model)
		}
		w.stop()
		next := start(t, setup{shelf: w.store.shelf, name: "b", config: offering})
		next.say("n1", "alice", "hello again")
		want(t, "model after a restart", next.model.requests("chat")[0].Model, "big")
		next.stop()
		less := start(t, setup{shelf: w.store.shelf, name: "c", config: func(c *Config) {
			offering(c)
			c.Models = c.Models[:1]
		}})
		less.say("n2", "alice", "and once more")
		want(t, "model that the file has no more", less.model.requests("chat")[0].Model, "")
	})
}

// Members read their id and role, and what their conversation has used, today and in the month.
func TestWhoAmIAndUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := text("fine")
		answered.Usage, answered.Cost = sessions.Usage{Prompt: 900, Completion: 100}, 0.5
		w := start(t, setup{config: offering, model: &script{chat: rounds(answered, answered)}})
		w.say("m1", "alice", "/whoami")
		want(t, "a member", w.last().Reply.Text, wording.Say(wording.WhoAmI, "en", "u-alice", "member", "c1"))
		w.say("m2", "root", "/我是谁")
		want(t, "an administrator", w.last().Reply.Text, wording.Say(wording.WhoAmI, "zh", "u-root", "管理员", "c1"))
		w.say("m3", "alice", "/usage")
		want(t, "before any call", w.last().Reply.Text, wording.Say(wording.UsageOf, "en", "none", "none"))
		w.say("m4", "alice", "hello")
		after(24 * time.Hour)
		w.say("m5", "alice", "hello again")
		w.say("m6", "alice", "/用量")
		today, month := "回答 1,000 tokens；费用 0.5000", "回答 2,000 tokens；费用 1.0000"
		want(t, "usage", w.last().Reply.Text, wording.Say(wording.UsageOf, "zh", today, month))
		w.say("m7", "alice", "/usage all")
		want(t, "a wrong argument", w.last().Reply.Text, "Usage: `/usage`")
	})
}
