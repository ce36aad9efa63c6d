package outbox

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/sessions"
)

// A reply to a forgotten conversation without a webhook takes an API call.
const maxWebhooks = 4096

// queues has the unsent replies of this process, and the webhooks and leases that they may use.
type queues struct {
	now   func() time.Time   // the storage's clock
	wake  func(sessions.Key) // starts a turn of a session that was turned away or lost its lease
	start func(q *queue)     // sends the replies of a new queue, until it is empty; the lock is held

	mu       sync.Mutex
	of       map[channel]*queue
	resumed  map[sessions.Key]int64 // terms under which unsent rows were read
	left     chan struct{}          // closed when replies leave a queue or others may pass them, and replaced
	closed   bool
	webhooks *lru.Cache[channel, webhook] // newest of each conversation, for messages that answer no question
}

func newQueues(now func() time.Time, wake func(sessions.Key), start func(*queue)) *queues {
	webhooks, err := lru.New[channel, webhook](maxWebhooks)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &queues{
		now: now, wake: wake, start: start, of: map[channel]*queue{}, resumed: map[sessions.Key]int64{}, left: make(chan struct{}), webhooks: webhooks,
	}
}

// isResumed reports whether the unsent rows of a lease were read, and noteResumed notes it.
func (s *queues) isResumed(l sessions.Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resumed[l.Key] == l.Term
}

func (s *queues) noteResumed(l sessions.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed[l.Key] = l.Term
}

func (s *queues) invalidate(key sessions.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.resumed, key)
}

func (s *queues) forget(held func(sessions.Key) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.resumed, func(key sessions.Key, _ int64) bool { return !held(key) })
}

// push returns newly queued replies, and gives the session's queued ones the newer lease.
func (s *queues) push(replies []*pending) (added []*pending) {
	if len(replies) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range replies {
		defer s.lend(p.channel, p.webhook) // also to themselves
	}
	c := s.behind(replies[0].channel, replies[0].key)
	if added = s.unknown(c, replies); len(added) == 0 {
		return nil
	}
	q := s.of[c]
	if q != nil {
		for _, p := range added {
			p.fresh = nil // other replies are before it
		}
		q.replies = append(q.replies, added...)
		q.notify()
		return added
	}
	if s.closed {
		return nil // the rows wait for the next process
	}
	q = &queue{channel: c, wake: make(chan struct{}, 1), replies: added, newest: s.newest(c)}
	s.of[c] = q
	s.start(q)
	return added
}

// close ends the queues when their due replies are sent.
func (s *queues) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, q := range s.of {
		q.notify()
	}
}

// heldRecheck is for a queue whose replies are all held back: the other queue wakes it.
const heldRecheck = time.Minute

// next reports false if the queue is empty and removed, or the process ends with unsent replies.
func (s *queues) next(ctx context.Context, q *queue) (batch []*pending, wait time.Duration, ok bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(q.replies) == 0 {
		delete(s.of, q.channel)
		return nil, 0, false
	}
	if ctx.Err() != nil {
		return nil, 0, false
	}
	batch, due := q.nextBatch(s.messages(q.channel).blocks)
	if len(batch) == 0 {
		return nil, heldRecheck, true
	}
	return batch, due.Sub(now), true
}

// pause also ends with another reply; false: the outbox closes.
func (s *queues) pause(ctx context.Context, q *queue, d time.Duration) bool {
	s.mu.Lock()
	closed := s.closed
	for _, p := range q.replies {
		p.fresh = nil
	}
	s.mu.Unlock()
	if closed {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	waited := false
	select {
	case <-t.C:
		waited = true
	case <-q.wake:
	case <-ctx.Done():
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q.waited = q.waited || waited
	return !s.closed
}

// pauseUntil delays all replies of a queue.
func (s *queues) pauseUntil(q *queue, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.until = t
}

// leases groups the rows of a batch by the leases that claim them.
func (s *queues) leases(batch []*pending) map[sessions.Lease][]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := map[sessions.Lease][]int64{}
	for _, p := range batch {
		ids[p.lease] = append(ids[p.lease], p.id)
	}
	return ids
}

// claimed are the rows of a batch, in its order.
func (s *queues) claimed(batch []*pending, rows map[rowID]sessions.Outgoing) (outs []sessions.Outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range batch {
		if out, ok := rows[p.rowID]; ok {
			out.Maybe, p.attempts = out.Maybe || p.maybe, out.Attempts
			outs = append(outs, out)
		}
	}
	return outs
}

// restartChanged sends a message again from its first part if an erasure changed one of its replies.
func (s *queues) restartChanged(batch []*pending, outs []sessions.Outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.EqualFunc(batch, outs, func(p *pending, out sessions.Outgoing) bool { return p.nonce == out.Reply.Nonce }) {
		return
	}
	for i, p := range batch {
		p.maybe = p.maybe || p.part > 0
		outs[i].Maybe = outs[i].Maybe || p.maybe
		p.nonce, p.part, p.joint = outs[i].Reply.Nonce, 0, ""
	}
}

// remove takes replies without a row out of a queue, and all whose lease is lost.
func (s *queues) remove(q *queue, gone []*pending, lost []sessions.Lease) (removed []*pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.replies = slices.DeleteFunc(q.replies, func(p *pending) bool {
		left := slices.Contains(lost, p.lease)
		if left || slices.Contains(gone, p) && !slices.ContainsFunc(lost, func(l sessions.Lease) bool { return l.Key == p.key }) {
			removed = append(removed, p)
			return true
		}
		return false
	})
	s.wakeTurnedAway(q)
	s.signalLeft(q)
	return removed
}

// useLent puts the conversation's newest webhook in place of one without use, as of a reminder, which has none. A joined message has
// one: the newest, if it was lent to one of its replies, lest that reply counts as tried there.
func (s *queues) useLent(q *queue, batch []*pending, outs []sessions.Outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	lent := slices.ContainsFunc(batch, func(p *pending) bool {
		return p.lent && p.webhook == q.newest || !p.webhook.isUsable(now) && q.newest.isUsable(now)
	})
	for i, p := range batch {
		if lent && q.newest.isAfter(p.webhook) {
			p.webhook, p.lent = q.newest, true
		}
		if t := &outs[i].Reply.Target; p.lent {
			t.Webhook, t.WebhookExpires = p.webhook.address, p.webhook.end
		}
	}
}

// remindersAfter counts the reminders behind a reply that wait for calls.
func (s *queues) remindersAfter(q *queue, p *pending) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.remindersAfter(p)
}

// noteMark notes whether the mark of a reply's last attempt is stored.
func (s *queues) noteMark(p *pending, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.unmarked = !stored
}

// apply changes a queue by an attempt.
func (s *queues) apply(q *queue, batch []*pending, a attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.waited = false
	if a.done() {
		q.replies = slices.DeleteFunc(q.replies, func(p *pending) bool { return slices.Contains(batch, p) })
		s.wakeTurnedAway(q)
		s.signalLeft(q)
		return
	}
	failed := failures(batch)
	switch {
	case a.more:
		failed = 0
	case a.failed:
		failed++
	}
	aside := a.aside || a.failed && failed >= maxFailures
	paused := !a.split && !a.outcome.Refused && !aside && !a.more
	if paused && !q.card {
		q.until = a.outcome.NextAt
	}
	for _, p := range batch {
		p.maybe, p.failures, p.aside = p.maybe || a.outcome.Maybe, failed, a.aside // replies of one message step aside together
		if aside || paused || q.card && !a.more {                                  // a pause of one session's message must not leave the card of another unfinished
			p.next = a.outcome.NextAt
		}
		switch {
		case a.split:
			p.alone, p.joint, p.part = true, "", 0
		case a.outcome.Refused:
			p.refusals, p.next = p.refusals+1, a.outcome.NextAt
			p.part = max(p.part, a.outcome.Part)
		default:
			p.part = max(p.part, a.outcome.Part)
			if (p.maybe || p.part > 0) && len(batch) > 1 {
				p.joint = jointKey(batch)
			}
		}
	}
	q.lend() // a webhook may have come during the attempt
	if a.outcome.Refused || aside {
		s.wakeTurnedAway(q)
		s.signalLeft(q)
	}
}

// blocks reports whether the session has unsent replies that no other passes. The lock is held.
func (s *queues) blocks(key sessions.Key) bool {
	for _, q := range s.of {
		if q.blocks(key) {
			return true
		}
	}
	return false
}

// messages is the queue of a conversation without cards, or nil. The lock is held.
func (s *queues) messages(c channel) *queue {
	c.card = false
	return s.of[c]
}

// newest is the last known webhook of a conversation. The lock is held.
func (s *queues) newest(c channel) webhook {
	c.card = false
	w, _ := s.webhooks.Get(c)
	return w
}

// lend keeps a webhook for further messages, and offers it to the replies of its conversation. The lock is held.
func (s *queues) lend(c channel, w webhook) {
	if !w.isUsable(s.now()) {
		return
	}
	if c.card = false; !w.end.IsZero() && w.isAfter(s.newest(c)) {
		s.webhooks.Add(c, w)
	}
	for _, c.card = range []bool{false, true} {
		if q := s.of[c]; q != nil && w.isAfter(q.newest) {
			q.newest = w
			q.lend()
		}
	}
}

// signalLeft needs the lock. Cards may wait for a message that left q.
func (s *queues) signalLeft(q *queue) {
	close(s.left)
	s.left = make(chan struct{})
	c := q.channel
	c.card = true
	if cards := s.of[c]; cards != nil && cards != q {
		cards.notify()
	}
}

const maxQueued = 2 * maxJoined

// wakeTurnedAway needs the lock.
func (s *queues) wakeTurnedAway(q *queue) {
	if q.length() >= maxQueued {
		return
	}
	for _, key := range q.turnedAway {
		s.wake(key)
	}
	q.turnedAway = nil
}

// behind lets a Markdown reply follow the session's card without a sent end: that reply may become Markdown too. The
// lock is held.
func (s *queues) behind(c channel, key sessions.Key) channel {
	cards := c
	cards.card = true
	if q := s.of[cards]; q != nil && q.holds(key) {
		return cards
	}
	return c
}

// unknown returns the replies that are in no queue of their conversation, and hands newer leases to the others. The
// lock is held.
func (s *queues) unknown(c channel, replies []*pending) (added []*pending) {
	for _, p := range replies {
		known := false
		for _, card := range []bool{false, true} {
			q := s.of[channel{c.robot, c.id, card}]
			known = q != nil && q.renew(p) || known
		}
		if !known {
			added = append(added, p)
		}
	}
	return added
}
