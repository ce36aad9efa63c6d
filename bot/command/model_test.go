package command_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// offering has two models.
func offering(c *bot.Config) {
	c.Admins, c.Own = []sessions.UserID{"u-root"}, ownInTests
	c.Models = []llm.ModelChoice{{Name: "main", Price: llm.Price{In: 2, Cached: 0.5, Out: 6}}, {Name: "big"}}
}

// An administrator chooses the model of a conversation by command. The choice is kept with the session beside its other
// settings, survives a restart, and is taken back.
func TestModelByCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: offering})
		n := 0
		answer := func(who, command string) string {
			n++
			w.Say(fmt.Sprint("c", n), who, command)
			return w.Last().Reply.Text
		}
		asked := func() string {
			answer("alice", "hello there")
			rs := w.Model.Requests("chat")
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
			bottest.Want(t, "settings after "+c.command, w.State(bottest.Group).Settings, c.kept)
			bottest.Want(t, "policy after "+c.command, w.Views.Choices.Settings(w.State(bottest.Group)).Policy.Name == "turns", c.kept != "")
			bottest.Want(t, "model after "+c.command, asked(), c.model)
		}
		w.Stop()
		next := bottest.Start(t, bottest.Setup{Shelf: w.Store.Shelf, Name: "b", Config: offering})
		next.Say("n1", "alice", "hello again")
		bottest.Want(t, "model after a restart", next.Model.Requests("chat")[0].Model, "big")
		next.Stop()
		less := bottest.Start(t, bottest.Setup{Shelf: w.Store.Shelf, Name: "c", Config: func(c *bot.Config) {
			offering(c)
			c.Models = c.Models[:1]
		}})
		less.Say("n2", "alice", "and once more")
		bottest.Want(t, "model that the file has no more", less.Model.Requests("chat")[0].Model, "")
	})
}

// Members read their id and role, and what their conversation has used, today and in the month.
func TestWhoAmIAndUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := bottest.Text("fine")
		answered.Usage, answered.Cost = sessions.Usage{Prompt: 900, Completion: 100}, 0.5
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Config: offering, Model: &bottest.Script{Chat: bottest.Rounds(answered, answered)}})
		w.Say("m1", "alice", "/whoami")
		bottest.Want(t, "a member", w.Last().Reply.Text, wording.Say(wording.WhoAmI, "en", "u-alice", "member", "c1"))
		w.Say("m2", "root", "/我是谁")
		bottest.Want(t, "an administrator", w.Last().Reply.Text, wording.Say(wording.WhoAmI, "zh", "u-root", "管理员", "c1"))
		w.Say("m3", "alice", "/usage")
		bottest.Want(t, "before any call", w.Last().Reply.Text, wording.Say(wording.UsageOf, "en", "none", "none"))
		w.Say("m4", "alice", "hello")
		bottest.After(24 * time.Hour)
		w.Say("m5", "alice", "hello again")
		w.Say("m6", "alice", "/用量")
		today, month := "回答 1,000 tokens；费用 0.5000", "回答 2,000 tokens；费用 1.0000"
		bottest.Want(t, "usage", w.Last().Reply.Text, wording.Say(wording.UsageOf, "zh", today, month))
		w.Say("m7", "alice", "/usage all")
		bottest.Want(t, "a wrong argument", w.Last().Reply.Text, "Usage: `/usage`")
	})
}
