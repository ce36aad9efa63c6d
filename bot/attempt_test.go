package bot

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/bot/turn"
	"ebb/sessions"
)

// Suspects run one at a time, the least counted first. A suspect that leaves the line, or gets its place too late,
// blocks no other.
func TestSuspectsRunOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &turn.Suspects{Closed: make(chan struct{})}
		first, err := s.Enter(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 4)
		for _, count := range []int{2, 1, 2, 1} {
			go func() {
				leave, err := s.Enter(t.Context(), count)
				if err == nil {
					order <- count
					leave()
				}
			}()
			synctest.Wait()
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := s.Enter(ctx, 1); ended <- err }()
		synctest.Wait()
		stop()
		if err := <-ended; err == nil {
			t.Error("a place was given to a suspect that had left")
		}
		want(t, "suspects that run beside the first", len(order), 0)
		first()
		first() // to leave twice gives one place
		var got []int
		for range 4 {
			got = append(got, <-order)
		}
		want(t, "order", got, []int{1, 1, 2, 2})
	})
}

// After a crash a model hangs on one of many suspects: the others wait for it no longer than suspectAlone.
func TestHangingSuspectHoldsUpOthersForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const others = 5
		a := start(t, setup{name: "a", model: &script{chat: hang}})
		for i := range others + 1 {
			a.post(elsewhere(i, fmt.Sprint("q", i)))
		}
		synctest.Wait()
		a.store.fail(func(string) error { return errAway }) // as a killed process
		b := start(t, setup{name: "b", shelf: a.store.shelf, model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if words := lastWords(r); words == "alice(u-alice): q0" {
				return hang(ctx, r)
			}
			return text("noted"), nil
		}}})
		after(10*time.Second + turn.SuspectAlone)
		want(t, "answered beside the one that hangs", len(b.wire.texts()), others)
		for i := range others + 1 {
			key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", i)), "")
			want(t, "attempts", a.store.mem.Events(t.Context(), key)[0].Attempts, 1)
		}
	})
}
