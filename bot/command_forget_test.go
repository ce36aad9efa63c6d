package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
)

// shyRights is a cabinet whose first preview fails, and that knows the messages of its session.
type shyRights struct {
	cabinet
	world    *world
	previews int
	failing  int // erasures that fail, from now on
	erased   int
	unmarked bool // messages have no outcomes, as in a log of an older release
}

func startShy(t *testing.T, rights shyRights) (*world, *shyRights) {
	t.Helper()
	r := &rights
	r.world = start(t, setup{config: func(c *Config) { c.Rights = r }})
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
	for _, e := range slices.Backward(r.world.store.mem.Events(ctx, key)) {
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
			w.say(id, "alice", words)
			texts := w.wire.texts()
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
func TestHalfDoneErasureIsConfirmedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{previews: 1, failing: 3})
		w.answerTo("m1", "alice", "/忘记我")
		for i, words := range []string{"/忘记我 确认", "确认", "/忘记我"} {
			want(t, words, w.answerTo(fmt.Sprint("c", i), "alice", words), wording.Say(wording.ForgetHalf, "zh"))
			after(confirmWithin - time.Minute)
		}
		want(t, "another person", w.answerTo("m2", "bob", "/忘记我 确认"), wording.Say(wording.NotAsked, "zh"))
		want(t, "behind it", w.answerTo("m4", "alice", "/忘记我 确认"), wording.Say(wording.ForgotBefore, "zh"))
		want(t, "erasures", rights.erased, 1)

		rights.failing = 1
		w.answerTo("m5", "alice", "/forget me")
		want(t, "the first", w.answerTo("m6", "alice", "yes"), wording.Say(wording.ForgetHalf, "zh")) // as all that she read
		want(t, "no", w.answerTo("m6a", "alice", "cancel"), wording.Say(wording.ForgetNothing, "zh"))
		after(confirmWithin + time.Minute)
		want(t, "too late", w.answerTo("m7", "alice", "/forget me yes"), wording.Say(wording.NotAsked, "zh"))
		want(t, "erasures", rights.erased, 1)
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
				rights := &shyRights{cabinet: cabinet{fact: memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeGroup, Content: "上线定在周五"}}}}
				w := start(t, setup{config: func(c *Config) { c.Rights, c.Admins = rights, []sessions.UserID{"u-root"} }})
				rights.world = w
				begins := func(id, who, words, with string) {
					t.Helper()
					if got := w.answerTo(id, who, words); !strings.HasPrefix(got, with) {
						t.Errorf("%s to %q is answered by %q, want %q", who, words, got, with)
					}
				}
				begins("m1", "alice", c.command, c.refused)
				begins("m2", "root", c.command+"  ", c.preview)
				want(t, "erased by then", rights.forgotten, 0)
				if e := w.store.mem.Events(t.Context(), group); strings.Contains(e[len(e)-1].Content, "上线") {
					t.Errorf("the log has the words of the fact: %q", e[len(e)-1].Content)
				}
				w.say("m3", "root", "cancel")
				want(t, "erased after a no", rights.forgotten, 0)
				begins("m4", "root", c.command, c.preview)
				begins("m5", "root", c.yes, c.gone)
				want(t, "erased", rights.forgotten, 1)
				rights.fact.Own = true
				begins("m6", "alice", c.command, c.gone)
				want(t, "erased", rights.forgotten, 2)
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
		w := start(t, setup{config: func(c *Config) { c.Rights, c.Admins = rights, []sessions.UserID{"u-root"} }})
		rights.world = w
		w.answerTo("m1", "root", "/忘记 @芳")
		want(t, "half done", w.answerTo("m2", "root", "确认"), wording.Say(wording.ForgetHalfWho, "zh", "staff77"))
		rights.named = "staff77" // the nick is gone
		want(t, "by name", w.answerTo("m3", "root", "/忘记 @芳"), wording.Say(wording.UnknownPerson, "zh"))
		if got := w.answerTo("m4", "root", "/忘记 @staff77"); !strings.Contains(got, "(staff77)") || rights.erased != 0 {
			t.Errorf("by id: %q, %d erasures", got, rights.erased)
		}
		want(t, "confirmed", w.answerTo("m5", "root", "确认"), wording.Say(wording.ForgotBefore, "zh"))
		want(t, "erasures", rights.erased, 1)
		for _, e := range w.store.mem.Events(t.Context(), group) {
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
		w.answerTo("m1", "alice", "/忘记我")
		w.post(reminding("m2", "alice", "确认"))
		synctest.Wait()
		texts := w.wire.texts()
		want(t, "the reminder", texts[len(texts)-1], "⏰ alice：确认")
		want(t, "erasures before the confirmation", rights.erased, 0)
		want(t, "confirmed", w.answerTo("m3", "alice", "确认"), wording.Say(wording.ForgotBefore, "zh"))
		want(t, "erasures", rights.erased, 1)
	})
}

// A reminder and its answer are in the log, and take no room of later requests.
func TestRemindersAreNoPartOfTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.say("m1", "alice", "hello")
		size := w.tokens()
		for i := range 20 {
			w.post(reminding(fmt.Sprint("r", i), "alice", prose(i, 100)+"of the reminder"))
			synctest.Wait()
		}
		want(t, "the context after the reminders", w.tokens(), size)
		w.say("m2", "alice", "thanks")
		all := w.model.requests("chat")
		for _, m := range all[len(all)-1].Messages {
			if strings.Contains(m.Content, "of the reminder") {
				t.Errorf("the model reads the reminder: %q", m.Content)
			}
		}
		logged := 0
		for _, e := range w.store.mem.Events(t.Context(), group) {
			if strings.Contains(e.Content, "of the reminder") && e.Seq > 0 {
				logged++
			}
		}
		want(t, "events of reminders", logged, 40)
	})
}

// A preview of an older release has no mark: it can't be confirmed, and the command shows the counts again.
func TestPreviewOfAnOlderReleaseIsShownAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{previews: 1})
		w.answerTo("m1", "alice", "/忘记我")
		rights.unmarked = true
		want(t, "confirmed", w.answerTo("m2", "alice", "/忘记我 确认"), wording.Say(wording.NotAsked, "zh"))
		if got := w.answerTo("m3", "alice", "/忘记我"); !strings.Contains(got, "回复“确认”") || rights.erased != 0 {
			t.Errorf("the command again: %q, %d erasures", got, rights.erased)
		}
		rights.unmarked = false
		want(t, "after the new preview", w.answerTo("m4", "alice", "确认"), wording.Say(wording.ForgotBefore, "zh"))
		want(t, "erasures", rights.erased, 1)
	})
}

// A typed command never counts as one whose erasure is done: that is kept beside the message, and not in its words.
func TestDoneErasureCannotBeTyped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, rights := startShy(t, shyRights{previews: 1})
		for i, words := range []string{memory.ForgetLastDone("en"), memory.ForgetLastDone("zh"), memory.ForgetDone("en"), memory.ForgetDone("zh")} {
			for _, sender := range []string{"alice", ""} {
				m := said(fmt.Sprint("m", i, sender), sender, words)
				if sender == "" {
					m.SenderID, m.StaffID = "", ""
				}
				w.post(m)
				synctest.Wait()
				texts := w.wire.texts()
				if got := texts[len(texts)-1]; strings.Contains(got, "🗑️") {
					t.Errorf("%q of %q is answered with %q", words, sender, got)
				}
			}
		}
		want(t, "erasures", rights.erased, 0)
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
				w := start(t, setup{config: func(c *Config) { c.Rights, c.Admins = rights, []sessions.UserID{"u-root"} }})
				rights.world = w
				if got := w.answerTo("m1", "root", "/忘记 @芳"); !strings.Contains(got, "王芳芳(staff77)") {
					t.Errorf("the administrator reads %q", got)
				}
				for _, e := range w.store.mem.Events(t.Context(), group) {
					if strings.Contains(e.Content, "王芳芳") || strings.Contains(e.Content, "staff77") {
						t.Errorf("the log keeps %q", e.Content)
					}
				}
				if !w.wire.sends()[0].Reply.Target.Passing {
					t.Error("the reply's row keeps its words")
				}
				if len(people) > 1 {
					return
				}
				want(t, "after a yes", w.answerTo("m2", "root", "确认"), wording.Say(wording.ForgotBefore, "zh"))
				want(t, "erasures", rights.erased, 1)
			})
		})
	}
}
