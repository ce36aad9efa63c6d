package chat

import (
	"strings"
	"testing"
	"time"

	"ebb/sessions"
)

// Presses of one moment are one message, and a later press is another one: the first may have decided nothing.
func TestLaterDecisionIsAnotherMessage(t *testing.T) {
	t.Parallel()
	at := time.Unix(6000, 0)
	id := DecisionID(7, "staff4711", sessions.ButtonApprove, at)
	if id != DecisionID(7, "staff4711", sessions.ButtonApprove, at.Add(time.Second)) || id == DecisionID(7, "staff4711", sessions.ButtonApprove, at.Add(time.Minute)) ||
		id == DecisionID(7, "staff4711", sessions.ButtonReject, at) || strings.Contains(string(id), "4711") {
		t.Errorf("the id is %s", id)
	}
}

// The id of a press repeats with its person and card, and differs from those of other people and cards. It outlives the erasure of the
// person: it has no id of a person in it, and no hash of one that others can compute.
func TestStopIDNamesNoPerson(t *testing.T) {
	t.Parallel()
	id := StopID(7, "staff4711")
	if id != StopID(7, "staff4711") || id == StopID(7, "staff0815") || id == StopID(8, "staff4711") || strings.Contains(string(id), "4711") {
		t.Errorf("the id is %s", id)
	}
	if id == stopID([]byte("another process"), 7, "staff4711") || id == stopID(nil, 7, "staff4711") {
		t.Errorf("the id %s can be computed without the key of the process", id)
	}
}
