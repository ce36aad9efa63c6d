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

// A preview that failed is none: whoever repeats the command, or says yes, sees the counts first.
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
		for _, text := range []string{say(sayForgetMe, lang, "x"), say(sayForgetWho, lang, "x", "y", "z", "w")} {
			if !strings.HasPrefix(text, previewMark) {
				t.Errorf("%q does not begin with %q", text, previewMark)
			}
		}
	}
}
