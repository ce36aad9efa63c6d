package index

import "testing"

// A log that was deleted and begins again is indexed as any other.
func TestNoteOfALogThatBeginsAgain(t *testing.T) {
	t.Parallel()
	s := NewLogs(nil)
	s.seen.Add("k", extent{10_000, 10_000})
	s.Note("k", batch-1)
	if _, ok := s.due["k"]; ok {
		t.Error("fewer places than a batch are due")
	}
	if s.Note("k", batch); s.due["k"] != noted {
		t.Errorf("a batch of places is %v", s.due["k"])
	}
}
