package bot_test

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
)

// A message that was stored under its encrypted sender id, and is delivered again after the staff id was learned, is
// answered once, also where each member has a session.
func TestRedeliveryAfterTheStaffIDIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Scope = sessions.ScopeMember }})
		first := bottest.Said("m1", "alice", "first question")
		first.EncryptedID = "$:alice"
		first.SenderID, first.StaffID = first.EncryptedID, ""
		w.Post(first)
		bottest.After(time.Second)

		both := bottest.Said("m2", "alice", "second question")
		both.EncryptedID = "$:alice"
		w.Post(both)
		bottest.After(time.Second)
		bottest.Want(t, "replies", len(w.Wire.Sends()), 2)

		w.Post(first)
		bottest.After(time.Second)
		bottest.Want(t, "replies after the redelivery", len(w.Wire.Sends()), 2)
		bottest.Want(t, "redelivered", w.Figure("redelivered"), 1)

		third := bottest.Said("m3", "alice", "third question")
		third.EncryptedID, third.SenderID, third.StaffID = "$:alice", "$:alice", ""
		w.Post(third)
		bottest.After(time.Second)
		bottest.Want(t, "replies to a new message", len(w.Wire.Sends()), 3)
	})
}

// A message is answered once where each member has a session, whichever ids of its sender each delivery has, and whatever
// the encrypted id stood for at the time.
func TestRedeliveryUnderAnotherSenderIDIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	with := func(id, staff string) sessions.Message {
		m := bottest.Said(id, "", "question "+id)
		m.EncryptedID = "$:one"
		m.SenderID, m.StaffID = sessions.UserID(cmp.Or(staff, "$:one")), sessions.UserID(staff)
		return m
	}
	for name, c := range map[string]struct{ before, first, between, again sessions.Message }{
		"the id became ambiguous":                {with("m1", "alice"), with("m2", ""), with("m3", "bob"), with("m2", "")},
		"the id became ambiguous, staff id gone": {with("m1", "alice"), with("m2", "alice"), with("m3", "bob"), with("m2", "")},
		"the second frame has the staff id":      {with("m1", "bob"), with("m2", ""), with("m3", "alice"), with("m2", "alice")},
		"the staff id of the clash":              {with("m1", "alice"), with("m2", ""), with("m3", "bob"), with("m2", "bob")},
		"the staff id comes with it":             {bottest.Said("m1", "carol", "hello"), with("m2", ""), bottest.Said("m3", "carol", "hello"), with("m2", "alice")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Scope = sessions.ScopeMember }})
				for _, m := range []sessions.Message{c.before, c.first, c.between, c.again} {
					w.Post(m)
					bottest.After(time.Second)
				}
				bottest.Want(t, "replies", len(w.Wire.Sends()), 3)
				bottest.Want(t, "redelivered", w.Figure("redelivered"), 1)
				w.Post(with("m4", ""))
				bottest.After(time.Second)
				bottest.Want(t, "replies to a new message", len(w.Wire.Sends()), 4)
			})
		})
	}
}
