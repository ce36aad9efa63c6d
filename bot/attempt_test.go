package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// After a crash a model hangs on one of many messages that fell with it: the others do not wait for it.
func TestHangingMessageHoldsUpNoOther(t *testing.T) {
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
		after(10 * time.Second)
		want(t, "answered beside the one that hangs", len(b.wire.texts()), others)
		for i := range others + 1 {
			key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", i)), "")
			want(t, "attempts", a.store.mem.Events(t.Context(), key)[0].Attempts, 1)
		}
	})
}

// A model hangs on a message that fell with two processes: it runs alone, and other conversations wait for it for a moment only.
func TestHangingSuspectHoldsUpOthersForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		for i := range 2 {
			w := start(t, setup{name: sessions.ReplicaID(fmt.Sprint("r", i)), shelf: shelf, model: &script{chat: hang}})
			if i == 0 {
				w.post(elsewhere(0, "q0"))
			}
			after(6 * time.Second)
			want(t, "requests", len(w.model.requests("chat")), 1)
			w.kill()
		}
		c := start(t, setup{name: "c", shelf: shelf, model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if lastWords(r) == "alice(u-alice): q0" {
				return hang(ctx, r)
			}
			return text("noted"), nil
		}}})
		after(6 * time.Second)
		want(t, "requests of the suspect", len(c.model.requests("chat")), 1)
		c.post(elsewhere(1, "q1"))
		c.post(elsewhere(2, "/status"))
		after(time.Second)
		texts := c.wire.texts()
		if len(texts) != 1 || !strings.Contains(texts[0], "takes") {
			t.Errorf("beside the suspect people read %q, want the answer to the command", texts)
		}
		after(suspectAlone)
		want(t, "answered beside the one that hangs", len(c.wire.texts()), 2)
	})
}

// A suspect that waits beside a turn is in the log once, when it is taken, however many commands come before it.
func TestCommandsBeforeAWaitingSuspect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		for i := range 2 {
			w := start(t, setup{name: sessions.ReplicaID(fmt.Sprint("r", i)), shelf: shelf, model: &script{chat: hang}})
			if i == 0 {
				w.post(elsewhere(0, "q0"))
			}
			after(6 * time.Second)
			w.kill()
		}
		c := start(t, setup{name: "c", shelf: shelf, model: &script{chat: hang}})
		c.post(elsewhere(1, "q1"))
		after(6 * time.Second)
		for i := range 3 {
			m := elsewhere(0, "/status")
			m.ID = sessions.MessageID(fmt.Sprint("status", i))
			c.post(m)
			after(time.Second)
		}
		want(t, "answers", len(c.wire.texts()), 3)
		want(t, "lines before it is taken", len(c.log.lines(t, takenAlone)), 0)
		after(2 * suspectAlone)
		want(t, "requests of the model", len(c.model.requests("chat")), 2)
		want(t, "lines then", len(c.log.lines(t, takenAlone)), 1)
	})
}

// A /stop ends a question that waits for its place among suspects, without a request of the model.
func TestStopOfAWaitingSuspect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		for i := range 2 {
			w := start(t, setup{name: sessions.ReplicaID(fmt.Sprint("r", i)), shelf: shelf, model: &script{chat: hang}})
			for c := 0; i == 0 && c < 2; c++ {
				w.post(elsewhere(c, fmt.Sprint("q", c)))
			}
			after(6 * time.Second)
			want(t, "requests", len(w.model.requests("chat")), 2)
			w.kill()
		}
		c := start(t, setup{name: "c", shelf: shelf, model: &script{chat: hang}})
		after(6 * time.Second)
		asked := c.model.requests("chat")
		if len(asked) != 1 {
			t.Fatalf("%d suspects run, want one", len(asked))
		}
		waiting := 0
		if lastWords(asked[0]) == "alice(u-alice): q0" {
			waiting = 1
		}
		m := elsewhere(waiting, "/stop")
		m.ID = "stop"
		c.post(m)
		after(time.Second)
		want(t, "requests of the model", len(c.model.requests("chat")), 1)
		key := sessions.NewKey("robot", m.ConversationID, "")
		for _, e := range shelf.mem.Events(t.Context(), key) {
			want(t, e.Content, e.State, sessions.Done)
		}
	})
}
