package command_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
)

// shyRights is a cabinet whose first preview fails, and that knows the messages of its session.
type shyRights struct {
	bottest.Rights
	world    *bottest.World
	previews int
	failing  int // erasures that fail, from now on
	erased   int
	unmarked bool // messages have no outcomes, as in a log of an older release
}

func startShy(t *testing.T, rights shyRights) (*bottest.World, *shyRights) {
	t.Helper()
	r := &rights
	r.world = bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { bottest.Knows(c, r) }})
	return r.world, r
}

func (r *shyRights) PreviewForget(context.Context, memory.Forget) (memory.Preview, error) {
	if r.previews++; r.previews == 1 {
		return memory.Preview{}, errors.New("the storage is away")
	}
	return memory.Preview{}, nil
}

func (r *shyRights) ForgetPerson(_ context.Context, f memory.Forget) (memory.Forgotten, error) {
	if r.failing--; r.failing >= 0 {
		return memory.Forgotten{Lease: f.From.Lease}, errors.New("the storage is away")
	}
	r.erased++
	return memory.Forgotten{Lease: f.From.Lease}, nil
}

func (r *shyRights) MessagesBefore(ctx context.Context, key sessions.Key, who sessions.UserID, before int64, limit int) ([]sessions.Event, error) {
	var found []sessions.Event
	for _, e := range slices.Backward(r.world.Store.Mem.Events(ctx, key)) {
		if e.Role == sessions.RoleUser && e.SenderID == who && e.ID < before && len(found) < limit {
			if r.unmarked && e.Message != nil {
				m := *e.Message
				m.Outcome, e.Message = "", &m
			}
			found = append(found, e)
		}
	}
	return found, nil
}

// A preview that failed is none: a repeated command, or a yes, shows the counts first.
func TestForgetMeAfterAFailedPreviewErasesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{})
		answer := func(id, words string) string {
			w.Say(id, "alice", words)
			texts := w.Wire.Texts()
			return texts[len(texts)-1]
		}
		if got := answer("m1", "/忘记我"); got != wording.Say(wording.NoRights, "zh") {
			t.Fatalf("a preview that failed is answered with %q", got)
		}
		if got := answer("m2", "/忘记我 确认"); got != wording.Say(wording.NotAsked, "zh") || rights.erased != 0 {
			t.Errorf("a yes to a preview that failed: %q, %d erasures", got, rights.erased)
		}
		if got := answer("m3", "/忘记我"); !strings.Contains(got, "回复“确认”") || rights.erased != 0 {
			t.Errorf("the command said again: %q, %d erasures", got, rights.erased)
		}
		if answer("m4", "/忘记我"); rights.erased != 1 {
			t.Errorf("%d erasures after a preview was shown, want 1", rights.erased)
		}
	})
}

// An erasure that was half done is confirmed again as it stands, as often as it takes, within the time from the last answer.
func TestConfirmationsAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]wording.Phrase{
		"确认": wording.ForgotBefore, "“确认”": wording.ForgotBefore, "「确认」。": wording.ForgotBefore, "確認": wording.ForgotBefore,
		"确认删除": wording.ForgotBefore, "\"confirm\"": wording.ForgotBefore, "`Confirm`": wording.ForgotBefore, "ｙｅｓ": wording.ForgotBefore,
		"“取消”": wording.ForgetNothing, "ＮＯ": wording.ForgetNothing,
	} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := startShy(t, shyRights{previews: 1})
			w.AnswerTo("m1", "alice", "/忘记我")
			bottest.Want(t, words, w.AnswerTo("m2", "alice", words), wording.Say(want, "zh"))
		})
	}
	for _, words := range []string{"确认吗？", "不确认", "“确认”是什么意思", "confirm what?"} {
		synctest.Test(t, func(t *testing.T) {
			w, rights := startShy(t, shyRights{previews: 1})
			w.AnswerTo("m1", "alice", "/忘记我")
			w.AnswerTo("m2", "alice", words)
			bottest.Want(t, words, rights.erased, 0)
		})
	}
}

func TestHalfDoneErasureIsConfirmedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{previews: 1, failing: 3})
		w.AnswerTo("m1", "alice", "/忘记我")
		for i, words := range []string{"/忘记我 确认", "确认", "/忘记我"} {
			bottest.Want(t, words, w.AnswerTo(fmt.Sprint("c", i), "alice", words), wording.Say(wording.ForgetHalf, "zh"))
			bottest.After(bottest.ConfirmWithin - time.Minute)
		}
		bottest.Want(t, "another person", w.AnswerTo("m2", "bob", "/忘记我 确认"), wording.Say(wording.NotAsked, "zh"))
		bottest.Want(t, "behind it", w.AnswerTo("m4", "alice", "/忘记我 确认"), wording.Say(wording.ForgotBefore, "zh"))
		bottest.Want(t, "erasures", rights.erased, 1)

		rights.failing = 1
		w.AnswerTo("m5", "alice", "/forget me")
		bottest.Want(t, "the first", w.AnswerTo("m6", "alice", "yes"), wording.Say(wording.ForgetHalf, "zh")) // as all that she read
		bottest.Want(t, "no", w.AnswerTo("m6a", "alice", "cancel"), wording.Say(wording.ForgetNothing, "zh"))
		bottest.After(bottest.ConfirmWithin + time.Minute)
		bottest.Want(t, "too late", w.AnswerTo("m7", "alice", "/forget me yes"), wording.Say(wording.NotAsked, "zh"))
		bottest.Want(t, "erasures", rights.erased, 1)
	})
}

// A fact of another person goes only once its erasure is confirmed, by either command, in words or by the command again. An own fact goes at once,
// and a member without the right is not asked.
func TestFactOfAnotherAsksFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, yes, refused, preview, gone string }{
		{"/记忆 忘记 3", "确认", "编号 3 不是关于你的", "⚠️ 编号 3 不是关于你的，也不是你说的：“上线定在周五”（", "🗑️ 已删除这条记忆：“上线定在周五”"},
		{"/memory forget 3", "yes", "Memory 3 is neither", "⚠️ Memory 3 is neither about you nor said by you: \"上线定在周五\" (", "🗑️ Deleted this memory: \"上线定在周五\""},
		{"/forget #3", "/memory forget 3", "Memory 3 is neither", "⚠️ Memory 3 is neither", "🗑️ Deleted"},
		{"/忘记＃３", "/忘记 #3 确认", "编号 3 不是", "⚠️ 编号 3 不是", "🗑️ 已删除"},
		{"/forget #3", "/forget #3", "Memory 3 is neither", "⚠️ Memory 3 is neither", "🗑️ Deleted"},
	} {
		t.Run(c.command+" "+c.yes, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rights := &shyRights{Rights: bottest.Rights{Fact: memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeGroup, Content: "上线定在周五"}}}}
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { bottest.Knows(c, rights); c.Admins = []sessions.UserID{"u-root"} }})
				rights.world = w
				begins := func(id, who, words, with string) {
					t.Helper()
					if got := w.AnswerTo(id, who, words); !strings.HasPrefix(got, with) {
						t.Errorf("%s to %q is answered by %q, want %q", who, words, got, with)
					}
				}
				begins("m1", "alice", c.command, c.refused)
				begins("m2", "root", c.command+"  ", c.preview)
				bottest.Want(t, "erased by then", rights.Forgotten, 0)
				if e := w.Store.Mem.Events(t.Context(), bottest.Group); strings.Contains(e[len(e)-1].Content, "上线") {
					t.Errorf("the log has the words of the fact: %q", e[len(e)-1].Content)
				}
				w.Say("m3", "root", "cancel")
				bottest.Want(t, "erased after a no", rights.Forgotten, 0)
				begins("m4", "root", c.command, c.preview)
				begins("m5", "root", c.yes, c.gone)
				bottest.Want(t, "erased", rights.Forgotten, 1)
				rights.Fact.Own = true
				begins("m6", "alice", c.command, c.gone)
				bottest.Want(t, "erased", rights.Forgotten, 2)
			})
		})
	}
}

// The name of another person may be gone from the log after a part of the erasure. The administrator is asked to go on by
// id, and the log keeps no id.
func TestHalfDoneErasureOfAnotherGoesOnByID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rights := &directory{people: []memory.Person{{ID: "staff77", Nick: "王芳芳"}}, shyRights: shyRights{previews: 1, failing: 1}}
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { bottest.Knows(c, rights); c.Admins = []sessions.UserID{"u-root"} }})
		rights.world = w
		w.AnswerTo("m1", "root", "/忘记 @芳")
		bottest.Want(t, "half done", w.AnswerTo("m2", "root", "确认"), wording.Say(wording.ForgetHalfWho, "zh", "staff77"))
		rights.named = "staff77" // the nick is gone
		bottest.Want(t, "by name", w.AnswerTo("m3", "root", "/忘记 @芳"), wording.Say(wording.UnknownPerson, "zh"))
		if got := w.AnswerTo("m4", "root", "/忘记 @staff77"); !strings.Contains(got, "(staff77)") || rights.erased != 0 {
			t.Errorf("by id: %q, %d erasures", got, rights.erased)
		}
		bottest.Want(t, "confirmed", w.AnswerTo("m5", "root", "确认"), wording.Say(wording.ForgotBefore, "zh"))
		bottest.Want(t, "erasures", rights.erased, 1)
		for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
			if e.Role == sessions.RoleAssistant && strings.Contains(e.Content, "staff77") {
				t.Errorf("the log keeps %q", e.Content)
			}
		}
	})
}

// A reminder that is sent behind a preview neither ends it nor confirms it.
func TestReminderBehindAPreview(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{previews: 1})
		w.AnswerTo("m1", "alice", "/忘记我")
		w.Post(bottest.Reminding("m2", "alice", "确认"))
		synctest.Wait()
		texts := w.Wire.Texts()
		bottest.Want(t, "the reminder", texts[len(texts)-1], "⏰ alice：确认")
		bottest.Want(t, "erasures before the confirmation", rights.erased, 0)
		bottest.Want(t, "confirmed", w.AnswerTo("m3", "alice", "确认"), wording.Say(wording.ForgotBefore, "zh"))
		bottest.Want(t, "erasures", rights.erased, 1)
	})
}

// A reminder and its answer are in the log, and take no room of later requests.
func TestRemindersAreNoPartOfTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Say("m1", "alice", "hello")
		size := w.Tokens()
		for i := range 20 {
			w.Post(bottest.Reminding(fmt.Sprint("r", i), "alice", bottest.Prose(i, 100)+"of the reminder"))
			synctest.Wait()
		}
		bottest.Want(t, "the context after the reminders", w.Tokens(), size)
		w.Say("m2", "alice", "thanks")
		all := w.Model.Requests("chat")
		for _, m := range all[len(all)-1].Messages {
			if strings.Contains(m.Content, "of the reminder") {
				t.Errorf("the model reads the reminder: %q", m.Content)
			}
		}
		logged := 0
		for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
			if strings.Contains(e.Content, "of the reminder") && e.Seq > 0 {
				logged++
			}
		}
		bottest.Want(t, "events of reminders", logged, 40)
	})
}

// A preview of an older release has no mark: it can't be confirmed, and the command shows the counts again.
func TestPreviewOfAnOlderReleaseIsShownAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{previews: 1})
		w.AnswerTo("m1", "alice", "/忘记我")
		rights.unmarked = true
		bottest.Want(t, "confirmed", w.AnswerTo("m2", "alice", "/忘记我 确认"), wording.Say(wording.NotAsked, "zh"))
		if got := w.AnswerTo("m3", "alice", "/忘记我"); !strings.Contains(got, "回复“确认”") || rights.erased != 0 {
			t.Errorf("the command again: %q, %d erasures", got, rights.erased)
		}
		rights.unmarked = false
		bottest.Want(t, "after the new preview", w.AnswerTo("m4", "alice", "确认"), wording.Say(wording.ForgotBefore, "zh"))
		bottest.Want(t, "erasures", rights.erased, 1)
	})
}

// A typed command never counts as one whose erasure is done: that is kept beside the message, and not in its words.
func TestDoneErasureCannotBeTyped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{previews: 1})
		for i, words := range []string{memory.ForgetLastDone("en"), memory.ForgetLastDone("zh"), memory.ForgetDone("en"), memory.ForgetDone("zh")} {
			for _, sender := range []string{"alice", ""} {
				m := bottest.Said(fmt.Sprint("m", i, sender), sender, words)
				if sender == "" {
					m.SenderID, m.StaffID = "", ""
				}
				w.Post(m)
				synctest.Wait()
				texts := w.Wire.Texts()
				if got := texts[len(texts)-1]; strings.Contains(got, "🗑️") {
					t.Errorf("%q of %q is answered with %q", words, sender, got)
				}
			}
		}
		bottest.Want(t, "erasures", rights.erased, 0)
	})
}

// directory is a cabinet that knows people by name.
type directory struct {
	shyRights
	people []memory.Person
	named  string // the only name under which they are found; empty: any
}

func (d *directory) People(_ context.Context, _ sessions.RobotCode, _ sessions.Key, name string) ([]memory.Person, error) {
	if d.named != "" && name != d.named {
		return nil, nil
	}
	return d.people, nil
}

func (d *directory) PreviewForget(context.Context, memory.Forget) (memory.Preview, error) {
	return memory.Preview{Messages: 2}, nil
}

// An administrator reads whom a preview is about, and the log keeps no name of them: the conversation may be one that the
// erasure does not reach.
func TestPreviewOfAPersonIsNotKept(t *testing.T) {
	t.Parallel()
	for name, people := range map[string][]memory.Person{
		"one":  {{ID: "staff77", Nick: "王芳芳"}},
		"many": {{ID: "staff77", Nick: "王芳芳"}, {ID: "staff78", Nick: "王芳芳"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rights := &directory{people: people}
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { bottest.Knows(c, rights); c.Admins = []sessions.UserID{"u-root"} }})
				rights.world = w
				if got := w.AnswerTo("m1", "root", "/忘记 @芳"); !strings.Contains(got, "王芳芳(staff77)") {
					t.Errorf("the administrator reads %q", got)
				}
				for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
					if strings.Contains(e.Content, "王芳芳") || strings.Contains(e.Content, "staff77") {
						t.Errorf("the log keeps %q", e.Content)
					}
				}
				if !w.Wire.Sends()[0].Reply.Target.Passing {
					t.Error("the reply's row keeps its words")
				}
				if len(people) > 1 {
					return
				}
				bottest.Want(t, "after a yes", w.AnswerTo("m2", "root", "确认"), wording.Say(wording.ForgotBefore, "zh"))
				bottest.Want(t, "erasures", rights.erased, 1)
			})
		})
	}
}
