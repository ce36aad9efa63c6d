package outbox

import (
	"context"
	"slices"
	"testing"
	"time"

	"ebb/bot/parts"
	"ebb/sessions"
	"ebb/sessions/lease"
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
	o := New(t.Context(), &parts.Shared{Leases: lease.NewHolder(nil, "r1", time.Minute)}, store, nil, nil, Options{})
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
	if len(o.queues.resumed) != 2 {
		t.Errorf("the outbox knows %d sessions, want 2", len(o.queues.resumed))
	}
}

func free(sessions.Key) bool { return false }

// A pause of one session's message leaves no card of another session unfinished. Without cards, a conversation is one line.
func TestPausedMessageHoldsBackItsOwnSession(t *testing.T) {
	t.Parallel()
	now := time.Now()
	paused := &pending{rowID: rowID{"alice", 1}, next: now.Add(time.Minute)}
	behind := &pending{rowID: rowID{"alice", 2}}
	card := &pending{rowID: rowID{"bob", 3}, card: true}
	message := &pending{rowID: rowID{"bob", 4}}
	for name, c := range map[string]struct {
		q    queue
		want []*pending
	}{
		"cards":         {queue{channel: channel{card: true}, replies: []*pending{paused, behind, card, message}}, []*pending{card}},
		"messages":      {queue{replies: []*pending{paused, behind, message}}, []*pending{paused}},
		"joined, cards": {queue{channel: channel{card: true}, waited: true, replies: []*pending{behind, card, message}}, []*pending{behind}},
		"joined":        {queue{waited: true, replies: []*pending{behind, message}}, []*pending{behind, message}},
	} {
		if batch, _ := c.q.nextBatch(free); !slices.Equal(batch, c.want) {
			t.Errorf("%s: the next message has %d replies, the first of %s", name, len(batch), batch[0].key)
		}
	}
}

// The storage ends the pause of a reply, and that of its queue if it is the reason. Other pauses stay.
func TestPauseEndsInTheStorage(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(time.Hour)
	first, second := &pending{rowID: rowID{"alice", 1}, next: until}, &pending{rowID: rowID{"bob", 2}}
	q := &queue{replies: []*pending{first, second}, until: until, wake: make(chan struct{}, 1)}
	for _, tt := range []struct {
		read *pending
		due  time.Time
	}{
		{&pending{rowID: first.rowID}, until}, {&pending{rowID: second.rowID, due: true}, until}, {&pending{rowID: first.rowID, due: true}, time.Time{}},
	} {
		if _, due := q.nextBatch(free); !q.renew(tt.read) || !due.Equal(until) {
			t.Errorf("reply %d is not known, or due at %v", tt.read.id, due)
		}
		if _, due := q.nextBatch(free); !due.Equal(tt.due) {
			t.Errorf("after reply %d was read, due %v, the next message goes at %v, want %v", tt.read.id, tt.read.due, due, tt.due)
		}
	}
}

// The first attempt has the time that its commit left. After a slow commit the reply is claimed again, with the whole time:
// an erasure waits from the claim on.
func TestFirstAttemptCountsFromItsCommit(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := &Outbox{sender: sender{shared: &parts.Shared{Now: func() time.Time { return now }}}}
	for age, want := range map[time.Duration]struct {
		time  time.Duration
		fresh bool
	}{
		0: {sessions.SendTime, true}, 2 * time.Second: {sessions.SendTime - 2*time.Second, true}, 4 * time.Second: {sessions.SendTime, false},
		-time.Minute: {sessions.SendTime, true},
	} {
		p := &pending{fresh: &sessions.Outgoing{Created: now.Add(-age)}}
		if got := o.sendTime(p); got != want.time || (p.fresh != nil) != want.fresh {
			t.Errorf("after %s the attempt has %s, from memory: %v", age, got, p.fresh != nil)
		}
	}
	if got := o.sendTime(&pending{}); got != sessions.SendTime {
		t.Errorf("a claimed attempt has %s", got)
	}
}
