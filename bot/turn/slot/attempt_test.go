package slot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// After a crash a model hangs on one of many messages that fell with it: the others do not wait for it.
func TestHangingMessageHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const others = 5
		a := bottest.Start(t, bottest.Setup{Name: "a", Model: &bottest.Script{Chat: bottest.Hang}})
		for i := range others + 1 {
			a.Post(bottest.Elsewhere(i, fmt.Sprint("q", i)))
		}
		synctest.Wait()
		a.Store.Fail(func(string) error { return bottest.ErrAway }) // as a killed process
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if words := bottest.LastWords(r); words == "alice(u-alice): q0" {
				return bottest.Hang(ctx, r)
			}
			return bottest.Text("noted"), nil
		}}})
		bottest.After(10 * time.Second)
		bottest.Want(t, "answered beside the one that hangs", len(b.Wire.Texts()), others)
		for i := range others + 1 {
			key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", i)), "")
			bottest.Want(t, "attempts", a.Store.Mem.Events(t.Context(), key)[0].Attempts, 1)
		}
	})
}

// A model hangs on a message that fell with two processes: it runs alone, and other conversations wait for it for a moment only.
func TestHangingSuspectHoldsUpOthersForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		for i := range 2 {
			w := bottest.Start(t, bottest.Setup{Name: sessions.ReplicaID(fmt.Sprint("r", i)), Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}})
			if i == 0 {
				w.Post(bottest.Elsewhere(0, "q0"))
			}
			bottest.After(6 * time.Second)
			bottest.Want(t, "requests", len(w.Model.Requests("chat")), 1)
			w.Kill()
		}
		c := bottest.Start(t, bottest.Setup{Name: "c", Shelf: shelf, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if bottest.LastWords(r) == "alice(u-alice): q0" {
				return bottest.Hang(ctx, r)
			}
			return bottest.Text("noted"), nil
		}}})
		bottest.After(6 * time.Second)
		bottest.Want(t, "requests of the suspect", len(c.Model.Requests("chat")), 1)
		c.Post(bottest.Elsewhere(1, "q1"))
		c.Post(bottest.Elsewhere(2, "/status"))
		bottest.After(time.Second)
		texts := c.Wire.Texts()
		if len(texts) != 1 || !strings.Contains(texts[0], "takes") {
			t.Errorf("beside the suspect people read %q, want the answer to the command", texts)
		}
		bottest.After(bottest.SuspectAlone)
		bottest.Want(t, "answered beside the one that hangs", len(c.Wire.Texts()), 2)
	})
}

// A suspect that waits beside a turn is in the log once, when it is taken, however many commands come before it.
func TestCommandsBeforeAWaitingSuspect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		for i := range 2 {
			w := bottest.Start(t, bottest.Setup{Name: sessions.ReplicaID(fmt.Sprint("r", i)), Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}})
			if i == 0 {
				w.Post(bottest.Elsewhere(0, "q0"))
			}
			bottest.After(6 * time.Second)
			w.Kill()
		}
		c := bottest.Start(t, bottest.Setup{Name: "c", Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}})
		c.Post(bottest.Elsewhere(1, "q1"))
		bottest.After(6 * time.Second)
		for i := range 3 {
			m := bottest.Elsewhere(0, "/status")
			m.ID = sessions.MessageID(fmt.Sprint("status", i))
			c.Post(m)
			bottest.After(time.Second)
		}
		bottest.Want(t, "answers", len(c.Wire.Texts()), 3)
		bottest.Want(t, "lines before it is taken", len(c.Log.Lines(t, bottest.TakenAlone)), 0)
		bottest.After(2 * bottest.SuspectAlone)
		bottest.Want(t, "requests of the model", len(c.Model.Requests("chat")), 2)
		bottest.Want(t, "lines then", len(c.Log.Lines(t, bottest.TakenAlone)), 1)
	})
}

// A /stop ends a question that waits for its place among suspects, without a request of the model.
func TestStopOfAWaitingSuspect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		for i := range 2 {
			w := bottest.Start(t, bottest.Setup{Name: sessions.ReplicaID(fmt.Sprint("r", i)), Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}})
			for c := 0; i == 0 && c < 2; c++ {
				w.Post(bottest.Elsewhere(c, fmt.Sprint("q", c)))
			}
			bottest.After(6 * time.Second)
			bottest.Want(t, "requests", len(w.Model.Requests("chat")), 2)
			w.Kill()
		}
		c := bottest.Start(t, bottest.Setup{Name: "c", Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}})
		bottest.After(6 * time.Second)
		asked := c.Model.Requests("chat")
		if len(asked) != 1 {
			t.Fatalf("%d suspects run, want one", len(asked))
		}
		waiting := 0
		if bottest.LastWords(asked[0]) == "alice(u-alice): q0" {
			waiting = 1
		}
		m := bottest.Elsewhere(waiting, "/stop")
		m.ID = "stop"
		c.Post(m)
		bottest.After(time.Second)
		bottest.Want(t, "requests of the model", len(c.Model.Requests("chat")), 1)
		key := sessions.NewKey("robot", m.ConversationID, "")
		for _, e := range shelf.Mem.Events(t.Context(), key) {
			bottest.Want(t, e.Content, e.State, sessions.Done)
		}
	})
}
