package bot

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// endless has the model speak of the first question until its call ends, and answer each later call. causes are the ends.
type endless struct {
	mu     sync.Mutex
	calls  int
	causes []error
}

func (e *endless) chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	e.mu.Lock()
	e.calls++
	first := e.calls == 1
	e.mu.Unlock()
	if !first {
		return text("re: " + lastWords(r)), nil
	}
	<-ctx.Done()
	e.mu.Lock()
	e.causes = append(e.causes, context.Cause(ctx))
	e.mu.Unlock()
	err := &llm.CallError{Class: llm.Timeout, Err: context.Cause(ctx)}
	return llm.Response{Text: "half", Parts: []llm.Part{{Model: "fake", Requests: 1, Err: err}}}, err
}

func (e *endless) ended() []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]error(nil), e.causes...)
}

// An erasure ends the turn of the old term at once, with its model call, and the question is answered under the new one. No member
// reads of a fault of the model.
func TestErasureEndsTheTurnAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &endless{calls: 1}
		w := start(t, setup{model: &script{chat: model.chat}})
		w.say("m0", "alice", "q0")
		after(2 * time.Second)
		model.calls = 0
		w.post(said("m1", "bob", "q1"))
		after(time.Second)
		if _, err := w.store.mem.Erase(t.Context(), group, []int64{1}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if causes := model.ended(); len(causes) != 1 || !errors.Is(causes[0], sessions.ErrLeaseLost) {
			t.Fatalf("right after the erasure the calls ended by %v", causes)
		}
		after(2 * time.Second)
		texts := w.wire.texts()
		want(t, "replies", len(texts), 2)
		want(t, "the last reply", texts[len(texts)-1], "re: bob(u-bob): q1")
	})
}

// A replica that lost a session ends its turn within seconds, even if no wake-up says so.
func TestTurnOfALostSessionEnds(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*world) error{
		"taken": func(w *world) error {
			l, err := w.store.mem.LeaseOf(w.t.Context(), group)
			if err == nil {
				err = w.store.mem.Release(w.t.Context(), l)
			}
			if err == nil {
				_, err = w.store.mem.Acquire(w.t.Context(), group, "b")
			}
			return err
		},
		"deleted": func(w *world) error { _, err := w.store.mem.Delete(w.t.Context(), group); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := &endless{}
				w := start(t, setup{model: &script{chat: model.chat}})
				w.post(said("m1", "bob", "q1"))
				after(time.Second)
				if err := lose(w); err != nil {
					t.Fatal(err)
				}
				after(6 * time.Second)
				if causes := model.ended(); len(causes) != 1 || !errors.Is(causes[0], sessions.ErrLeaseLost) {
					t.Errorf("the calls ended by %v", causes)
				}
			})
		})
	}
}
