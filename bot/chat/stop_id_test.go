package chat

import (
	"strings"
	"testing"
)

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
