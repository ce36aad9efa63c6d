package bot

import (
	"testing"
	"testing/synctest"
	"time"
)

// A message that was stored under its encrypted sender id, and is delivered again after the staff id was learned, is
// answered once, also where each member has a session.
func TestRedeliveryAfterTheStaffIDIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.PerMember = true }})
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
