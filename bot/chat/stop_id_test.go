package chat

import (
	"strings"
	"testing"
)

// The id of a press repeats with its person and card, and differs from those of other people and cards. It has no id of a person in it,
// since it outlives the erasure of the person.
func TestStopIDNamesNoPerson(t *testing.T) {
	t.Parallel()
	id := StopID("card-1", "staff4711")
	if id != StopID("card-1", "staff4711") || id == StopID("card-1", "staff0815") || id == StopID("card-2", "staff4711") || strings.Contains(string(id), "4711") {
		t.Errorf("the id is %s", id)
	}
}
