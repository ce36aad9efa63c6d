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

// summarizing is a model whose summaries use tokens.
func summarizing() *bottest.Script {
	return &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{Text: bottest.GoodSummary, Finish: llm.FinishStop, Model: "cheap", Usage: sessions.Usage{Prompt: 1200, Completion: 34}}, nil
	}}
}

// A person over the day's tokens compacts nothing by hand, and what another person's command takes counts as theirs. Free
// commands work.
func TestCommandsThatCostAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: summarizing(), Config: func(c *bot.Config) {
			c.Admins = []sessions.UserID{"u-root", "u-ann"}
			c.Compaction.Enabled, c.Limits = false, sessions.Limits{PersonTokens: 100_000}
		}})
		w.Fill(3000)
		bottest.After(time.Minute)
		spend := func(who sessions.UserID) {
			if err := w.Store.Mem.Limits.SpendTokens(t.Context(), "robot", map[sessions.UserID]int{who: 100_000}); err != nil {
				t.Fatal(err)
			}
		}
		spend("u-root")
		before := len(w.Model.Requests("summary"))
		if got := w.AnswerTo("m1", "root", "/compact"); !strings.Contains(got, "your allowance of the day") {
			t.Errorf("a person over the tokens of the day compacts: %q", got)
		}
		bottest.Want(t, "summaries", len(w.Model.Requests("summary")), before)
		if got := w.AnswerTo("m2", "root", "/status"); strings.Contains(got, "allowance") {
			t.Errorf("a command that costs nothing is refused: %q", got)
		}
		w.AnswerTo("m3", "ann", "/compact")
		bottest.After(time.Minute)
		bottest.Want(t, "summaries", len(w.Model.Requests("summary")), before+1)
		u, err := w.Store.Mem.Limits.Used(t.Context(), sessions.Askers{Robot: "robot", People: []sessions.UserID{"u-ann"}})
		if err != nil || u.PersonTokens.Count < 1234 {
			t.Errorf("the person's command counts %+v (%v), want the tokens of its summary", u.PersonTokens, err)
		}
		spend("u-ann")
		for i, command := range []string{"/compact", "/compact undo", "/remind tomorrow at 9 tea", "/compact focus tea"} {
			w.Say(fmt.Sprint("n", i), "ann", command)
		}
		bottest.Want(t, "summaries", len(w.Model.Requests("summary")), before+1)
		if got := w.Last().Reply.Text; !strings.Contains(got, "your allowance of the day") {
			t.Errorf("the commands are answered with %q, want one notice of the limit", got)
		}
	})
}

// A loop of compactions and undos ends after the day's compactions by hand, and goes on the next day.
func TestCompactionsByHandEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: summarizing(), Config: func(c *bot.Config) {
			c.Admins = []sessions.UserID{"u-root"}
			c.Compaction.Enabled, c.Limits = false, sessions.Limits{Compactions: 3}
		}})
		w.Fill(3000)
		bottest.After(time.Minute)
		before, day := len(w.Model.Requests("summary")), time.Now().UTC().YearDay()
		for i := range 8 {
			w.Say(fmt.Sprint("c", i), "root", "/compact")
			bottest.After(time.Second)
			w.Say(fmt.Sprint("u", i), "root", "/compact undo")
			bottest.After(time.Second)
		}
		bottest.Want(t, "summaries", len(w.Model.Requests("summary"))-before, 3)
		notices := 0
		for _, one := range w.Wire.Texts() {
			if strings.Contains(one, "compacted by hand 3 times today") {
				notices++
			}
		}
		bottest.Want(t, "notices", notices, 1)
		for time.Now().UTC().YearDay() == day {
			bottest.After(time.Hour)
		}
		w.Say("next", "root", "/compact")
		bottest.After(time.Second)
		bottest.Want(t, "summaries of both days", len(w.Model.Requests("summary"))-before, 4)
	})
}

// The scheduled questions of a person have a bound of a day, which other questions don't.
func TestScheduledQuestionsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Limits = sessions.Limits{ScheduledTurns: 2} }})
		ask := func(i int) {
			m := bottest.Said(fmt.Sprint("s", i), "alice", "how far are we")
			m.Scheduled = &sessions.Scheduled{ID: 1, Kind: sessions.AskModel, DueAt: time.Now()}
			w.Post(m)
			bottest.After(time.Hour)
		}
		for i := range 5 {
			ask(i)
		}
		bottest.Want(t, "questions of the model", len(w.Model.Requests("chat")), 2)
		if texts := w.Wire.Texts(); len(texts) != 3 || !strings.Contains(texts[2], "scheduled questions") {
			t.Errorf("replies are %q, want two answers and a notice", texts)
		}
		w.Say("m1", "alice", "hello")
		bottest.Want(t, "questions of the model with one of a person", len(w.Model.Requests("chat")), 3)
	})
}

// Askers read each limit that may stop them: the ones of a day, and their share of a group's turns and of the tokens beside others.
func TestUsageHasEveryLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := bottest.Text("fine")
		answered.Usage = sessions.Usage{Prompt: 900, Completion: 100}
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) { return answered, nil }}, Config: func(c *bot.Config) {
			c.Limits = sessions.Limits{GroupTurns: 10, ScheduledTurns: 4, Compactions: 3, Tokens: 9000}
		}})
		usage := func(id string) string {
			_, own, _ := strings.Cut(w.AnswerTo(id, "eve", "/usage"), "Your limits here:\n")
			return own
		}
		const day = "; the window ends at 01-02 00:00\n"
		bottest.Want(t, "the use before the first turn", usage("m1"), "- questions of this group in a minute: 0 of 10 used, 10 left\n"+
			"- your scheduled questions in a day of UTC: 0 of 4 used, 4 left\n"+
			"- compactions of this conversation by command in a day of UTC: 0 of 3 used, 3 left\n"+
			"- tokens of all conversations in a day of UTC: 0 of 9,000 used, 9,000 left"+day)
		for i, who := range []string{"alice", "alice", "alice", "eve", "eve"} {
			w.Say(fmt.Sprint("q", i), who, "hello")
		}
		m := bottest.Said("s1", "eve", "how far are we")
		m.Scheduled = &sessions.Scheduled{ID: 1, Kind: sessions.AskModel, DueAt: time.Now()}
		w.Post(m)
		bottest.After(time.Second)
		const minute = "; the window ends at 00:01:00\n"
		bottest.Want(t, "the use beside others", usage("m2"), "- questions of this group in a minute: 6 of 10 used, 4 left"+minute+
			"- your share of them beside the others: 3 of 7 used, 4 left"+minute+
			"- your scheduled questions in a day of UTC: 1 of 4 used, 3 left"+day+
			"- compactions of this conversation by command in a day of UTC: 0 of 3 used, 3 left\n"+
			"- tokens of all conversations in a day of UTC: 6,000 of 9,000 used, 3,000 left"+day+
			"- your share of them beside the others: 3,000 of 6,000 used, 3,000 left"+day)
	})
}

// A member alone may use all turns of the group. With others beside them, some are left.
func TestOneMemberLeavesTurnsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Limits = sessions.Limits{GroupTurns: 5} }})
		w.Say("a1", "alice", "hello")
		bottest.After(time.Minute)
		for i := range 10 {
			w.Say(fmt.Sprint("e", i), "eve", "hello")
		}
		bottest.Want(t, "answers", len(w.Model.Requests("chat")), 5)
		if got := w.Last().Reply.Text; !strings.Contains(got, "your share of this conversation's minute") {
			t.Errorf("eve read %q, want that the rest is for the others", got)
		}
		w.Say("a2", "alice", "hello again")
		bottest.Want(t, "answers with the other's", len(w.Model.Requests("chat")), 6)
	})
}

// A question that erasures by another person cut three times is counted once, and answered.
func TestErasuresCountNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{
			Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				<-time.After(1500 * time.Millisecond) // on the clock of the bubble
				return bottest.Text("re: " + bottest.LastWords(r)), nil
			}},
			Config: func(c *bot.Config) { c.Limits = sessions.Limits{PersonTurns: 1, GroupTurns: 2, PersonTokens: 1000} },
		})
		w.Say("m0", "alice", "q0")
		bottest.After(2 * time.Second)
		w.Post(bottest.Said("m1", "bob", "q1"))
		for range 3 {
			bottest.After(1200 * time.Millisecond)
			if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{1}); err != nil {
				t.Fatal(err)
			}
		}
		bottest.After(5 * time.Second)
		bottest.Want(t, "the last reply", w.Last().Reply.Text, "re: bob(u-bob): q1")
		u, err := w.Store.Mem.Limits.Used(t.Context(), sessions.Askers{Robot: "robot", Group: "c1", People: []sessions.UserID{"u-bob"}})
		if err != nil || u.PersonTurns.Count != 1 || u.GroupTurns.Count != 2 {
			t.Errorf("counted are %+v (%v), want one turn of the person and two of the group", u, err)
		}
	})
}
