package bot

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// A message that was stored under its encrypted sender id, and is delivered again after the staff id was learned, is
// answered once, also where each member has a session.
func TestRedeliveryAfterTheStaffIDIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Scope = sessions.ScopeMember }})
		first := said("m1", "alice", "first question")
		first.EncryptedID = "$:alice"
		first.SenderID, first.StaffID = first.EncryptedID, ""
		w.post(first)
		after(time.Second)

		both := said("m2", "alice", "second question")
		both.EncryptedID = "$:alice"
		w.post(both)
		after(time.Second)
		want(t, "replies", len(w.wire.sends()), 2)

		w.post(first)
		after(time.Second)
		want(t, "replies after the redelivery", len(w.wire.sends()), 2)
		want(t, "redelivered", w.bot.restarts.redelivered.Load(), int64(1))

		third := said("m3", "alice", "third question")
		third.EncryptedID, third.SenderID, third.StaffID = "$:alice", "$:alice", ""
		w.post(third)
		after(time.Second)
		want(t, "replies to a new message", len(w.wire.sends()), 3)
	})
}

// A message is answered once where each member has a session, whichever ids of its sender each delivery has, and whatever
// the encrypted id stood for at the time.
func TestRedeliveryUnderAnotherSenderIDIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	with := func(id, staff string) sessions.Message {
		m := said(id, "", "question "+id)
		m.EncryptedID = "$:one"
		m.SenderID, m.StaffID = sessions.UserID(cmp.Or(staff, "$:one")), sessions.UserID(staff)
		return m
	}
	for name, c := range map[string]struct{ before, first, between, again sessions.Message }{
		"the id became ambiguous":                {with("m1", "alice"), with("m2", ""), with("m3", "bob"), with("m2", "")},
		"the id became ambiguous, staff id gone": {with("m1", "alice"), with("m2", "alice"), with("m3", "bob"), with("m2", "")},
		"the second frame has the staff id":      {with("m1", "bob"), with("m2", ""), with("m3", "alice"), with("m2", "alice")},
		"the staff id of the clash":              {with("m1", "alice"), with("m2", ""), with("m3", "bob"), with("m2", "bob")},
		"the staff id comes with it":             {said("m1", "carol", "hello"), with("m2", ""), said("m3", "carol", "hello"), with("m2", "alice")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{config: func(c *Config) { c.Scope = sessions.ScopeMember }})
				for _, m := range []sessions.Message{c.before, c.first, c.between, c.again} {
					w.post(m)
					after(time.Second)
				}
				want(t, "replies", len(w.wire.sends()), 3)
				want(t, "redelivered", w.bot.restarts.redelivered.Load(), int64(1))
				w.post(with("m4", ""))
				after(time.Second)
				want(t, "replies to a new message", len(w.wire.sends()), 4)
			})
		})
	}
}
