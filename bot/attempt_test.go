package bot

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

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
		after(10*time.Second + suspectAlone)
		want(t, "answered beside the one that hangs", len(b.wire.texts()), others)
		for i := range others + 1 {
			key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", i)), "")
			want(t, "attempts", a.store.mem.Events(t.Context(), key)[0].Attempts, 1)
		}
	})
}
