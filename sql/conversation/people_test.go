package conversation

import (
	"testing"
	"time"

	"ebb/sessions"
)

// A session that was deleted with its people and created again may have the lease of before. Its people are noted again.
func TestSpeakersOfASessionCreatedAgain(t *testing.T) {
	t.Parallel()
	l, now := sessions.Lease{Key: "k", Owner: "a", Term: 3}, time.Now()
	said := []sessions.Event{{ID: 7, SenderID: "zhang", SenderNick: "Zhang", Message: &sessions.Message{}}}
	s := newSpeakers()
	s.open(l, 0, said)
	if s.areNoted(l, []int64{7}, now) {
		t.Error("a new speaker counts as noted")
	}
	s.note(l, []int64{7}, now)
	if s.open(l, 1, said); !s.areNoted(l, []int64{7}, now) {
		t.Error("a speaker of the turn before is not remembered")
	}
	if s.open(l, 0, said); s.areNoted(l, []int64{7}, now) {
		t.Error("a speaker of the deleted session counts as noted in the new one")
	}
}
