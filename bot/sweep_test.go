package bot_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// A running turn keeps its session whose row is deleted, also where other work of the session forgot its lease meanwhile. The model
// is asked once for each message.
func TestRunningTurnKeepsADeletedSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			<-answer
			return bottest.Text("re: " + bottest.LastWords(r)), nil
		}}})
		w.Say("m0", "alice", "q0")
		bottest.After(time.Second)
		held, _ := w.Bot.Leases().Held(bottest.Group)
		for range 2 {
			w.Store.Mem.DeleteRow(bottest.Group)
			_ = w.Bot.Leases().Check(bottest.Group, sessions.ErrLeaseLost)
			bottest.After(2 * bottest.LeaseTTL)
			s, err := w.Store.Mem.Sessions.Session(t.Context(), bottest.Group)
			bottest.Want(t, "error of reading the session", err, nil)
			bottest.Want(t, "lease", s.Lease, held)
		}
		w.Store.Mem.DeleteRow(bottest.Group)
		w.Say("m1", "bob", "q1")
		close(answer)
		bottest.After(3 * time.Second)
		bottest.Want(t, "texts", w.Wire.Texts(), []string{"re: alice(u-alice): q0", "re: bob(u-bob): q1"})
		bottest.Want(t, "requests", len(w.Model.Requests("chat")), 2)
	})
}

// deaf is a storage that passes on no notification.
type deaf struct{ sessions.Inbox }

func (deaf) Listen(ctx context.Context, _ sessions.ReplicaID, _ func(sessions.Key)) error {
	<-ctx.Done()
	return nil
}

// A replica that hears no notification answers what another one stored for it, and what that left at its stop, with its next sweep.
func TestSweepMakesUpForLostNotifications(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		a := bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "a", Config: func(c *bot.Config) { c.Stores.Inbox = deaf{c.Stores.Inbox} }})
		b := bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "b"})
		a.Say("m0", "alice", "q0")
		b.Say("m1", "bob", "q1")
		bottest.Want(t, "replies without a sweep", len(a.Wire.Texts()), 1)
		bottest.After(bottest.SweepEvery)
		bottest.Want(t, "replies with one", a.Wire.Texts(), []string{"re: alice(u-alice): q0", "re: bob(u-bob): q1"})
		b.Store.Fail(bottest.Times(1000, "begin", bottest.ErrAway)) // it takes no turn, and leaves the message
		elsewhere := bottest.Said("m2", "carol", "q2")
		elsewhere.ConversationID = "c2"
		b.Post(elsewhere)
		b.Stop()
		bottest.After(2 * bottest.SweepEvery)
		bottest.Want(t, "replies of the other one", len(b.Wire.Texts()), 0)
		bottest.Want(t, "replies after its stop", len(a.Wire.Texts()), 3)
	})
}
