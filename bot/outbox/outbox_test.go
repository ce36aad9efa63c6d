package outbox

import (
	"context"
	"testing"

	"ebb/sessions"
)

// emptyStore has no unsent replies, and counts how often they are read.
type emptyStore struct {
	sessions.Outbox
	reads map[sessions.Key]int
}

func (s *emptyStore) Unsent(_ context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	s.reads[l.Key]++
	return nil, nil
}

// Unsent replies are read once for each term. The state of a session ends with its lease, and the next term reads
// again.
func TestUnsentRepliesAreReadOncePerTerm(t *testing.T) {
	t.Parallel()
	store := &emptyStore{reads: map[sessions.Key]int{}}
	o := New(t.Context(), Config{Store: store})
	for i, c := range []struct {
		key   sessions.Key
		term  int64
		end   sessions.Key // the session whose lease ends before
		reads int
	}{
		{"s", 1, "", 1}, {"s", 1, "", 1}, {"s", 2, "", 2}, {"other", 1, "", 1}, {"s", 2, "other", 2}, {"other", 1, "", 2}, {"s", 2, "s", 3},
	} {
		if c.end != "" {
			o.Forget(func(key sessions.Key) bool { return key != c.end })
		}
		if err := o.Resume(t.Context(), sessions.Lease{Key: c.key, Term: c.term}); err != nil || store.reads[c.key] != c.reads {
			t.Errorf("step %d: error %v and %d reads of %s, want %d", i, err, store.reads[c.key], c.key, c.reads)
		}
	}
	if len(o.resumed) != 2 {
		t.Errorf("the outbox knows %d sessions, want 2", len(o.resumed))
	}
}
