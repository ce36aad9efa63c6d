package slot_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
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
		return bottest.Text("re: " + bottest.LastWords(r)), nil
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
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: model.chat}})
		w.Say("m0", "alice", "q0")
		bottest.After(2 * time.Second)
		model.calls = 0
		w.Post(bottest.Said("m1", "bob", "q1"))
		bottest.After(time.Second)
		if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{1}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if causes := model.ended(); len(causes) != 1 || !errors.Is(causes[0], sessions.ErrLeaseLost) {
			t.Fatalf("right after the erasure the calls ended by %v", causes)
		}
		bottest.After(2 * time.Second)
		texts := w.Wire.Texts()
		bottest.Want(t, "replies", len(texts), 2)
		bottest.Want(t, "the last reply", texts[len(texts)-1], "re: bob(u-bob): q1")
	})
}

// A replica that lost a session ends its turn within seconds, even if no wake-up says so.
func TestTurnOfALostSessionEnds(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*bottest.World) error{
		"taken": func(w *bottest.World) error {
			l, err := w.Store.Mem.Cards.LeaseOf(w.T.Context(), bottest.Group)
			if err == nil {
				err = w.Store.Mem.Leases.Release(w.T.Context(), l)
			}
			if err == nil {
				_, err = w.Store.Mem.Leases.Acquire(w.T.Context(), bottest.Group, "b")
			}
			return err
		},
		"deleted": func(w *bottest.World) error {
			_, err := w.Store.Mem.Erasure.Delete(w.T.Context(), bottest.Group)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := &endless{}
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: model.chat}})
				w.Post(bottest.Said("m1", "bob", "q1"))
				bottest.After(time.Second)
				if err := lose(w); err != nil {
					t.Fatal(err)
				}
				bottest.After(6 * time.Second)
				if causes := model.ended(); len(causes) != 1 || !errors.Is(causes[0], sessions.ErrLeaseLost) {
					t.Errorf("the calls ended by %v", causes)
				}
			})
		})
	}
}
