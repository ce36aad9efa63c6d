package bot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ebb/memory"
	"ebb/sessions"
)

// shyRights is a cabinet whose first preview fails, and that knows the messages of its session.
type shyRights struct {
	cabinet
	world    *world
	previews int
	erased   int
}

func (r *shyRights) PreviewForget(context.Context, memory.Forget) (memory.Preview, error) {
	if r.previews++; r.previews == 1 {
		return memory.Preview{}, errors.New("the storage is away")
	}
	return memory.Preview{}, nil
}

func (r *shyRights) ForgetPerson(_ context.Context, f memory.Forget) (memory.Forgotten, error) {
	r.erased++
	return memory.Forgotten{Lease: f.From.Lease}, nil
}

func (r *shyRights) MessagesBefore(ctx context.Context, key sessions.Key, who sessions.UserID, before int64, limit int) ([]sessions.Event, error) {
	var found []sessions.Event
	for _, e := range slices.Backward(r.world.store.mem.Events(ctx, key)) {
		if e.Role == sessions.RoleUser && e.SenderID == who && e.ID < before && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}

// A preview that failed is none: a repeated command, or a yes, shows the counts first.
func TestForgetMeAfterAFailedPreviewErasesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rights := &shyRights{}
		w := start(t, setup{config: func(c *Config) { c.Rights = rights }})
		rights.world = w
		answer := func(id, words string) string {
			w.say(id, "alice", words)
			texts := w.wire.texts()
			return texts[len(texts)-1]
		}
		if got := answer("m1", "/忘记我"); got != say(sayNoRights, "zh") {
			t.Fatalf("a preview that failed is answered with %q", got)
		}
		if got := answer("m2", "/忘记我 确认"); got != say(sayNotAsked, "zh") || rights.erased != 0 {
			t.Errorf("a yes to a preview that failed: %q, %d erasures", got, rights.erased)
		}
		if got := answer("m3", "/忘记我"); !strings.HasPrefix(got, previewMark) || rights.erased != 0 {
			t.Errorf("the command said again: %q, %d erasures", got, rights.erased)
		}
		if answer("m4", "/忘记我"); rights.erased != 1 {
			t.Errorf("%d erasures after a preview was shown, want 1", rights.erased)
		}
	})
}

// Both previews begin with the mark that they are recognised by.
func TestPreviewsBeginWithTheirMark(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"zh", "en"} {
		for _, text := range []string{say(sayForgetMe, lang, "x"), say(sayForgetWho, lang, "x", "y", "z", "w"), say(sayForgetAsked, lang)} {
			if !strings.HasPrefix(text, previewMark) {
				t.Errorf("%q does not begin with %q", text, previewMark)
			}
		}
	}
}

// directory is a cabinet that knows people by name.
type directory struct {
	shyRights
	people []memory.Person
}

func (d *directory) People(context.Context, sessions.RobotCode, string) ([]memory.Person, error) {
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
				if got := w.told("m1", "root", "/忘记 @芳"); !strings.Contains(got, "王芳芳(staff77)") {
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
				want(t, "after a yes", w.told("m2", "root", "确认"), say(sayForgotBefore, "zh"))
				want(t, "erasures", rights.erased, 1)
			})
		})
	}
}
