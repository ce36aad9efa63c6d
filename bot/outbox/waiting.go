package outbox

import (
	"context"
	"slices"
	"time"

	"ebb/sessions"
)

// Holds reports whether the session has unsent replies.
func (o *Outbox) Holds(key sessions.Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds(key)
}

func (o *Outbox) holds(key sessions.Key) bool {
	for _, q := range o.queues {
		if q.holds(key) {
			return true
		}
	}
	return false
}

// AwaitSent implements turn.Outbox. It waits for no reply that others pass: a reminder without calls may wait for a day.
func (o *Outbox) AwaitSent(ctx context.Context, key sessions.Key, to sessions.Target, atMost time.Duration) bool {
	ctx, stop := context.WithTimeout(ctx, atMost)
	defer stop()
	robot, id := key.Conversation()
	o.mu.Lock()
	o.lend(channel{robot: robot, id: id}, webhookOf(to))
	o.mu.Unlock()
	for {
		o.mu.Lock()
		held, left := o.blocks(key), o.left
		o.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-left:
		case <-ctx.Done():
			return false
		}
	}
}

// blocks reports whether the session has unsent replies that no other passes. The lock is held.
func (o *Outbox) blocks(key sessions.Key) bool {
	for _, q := range o.queues {
		if q.blocks(key) {
			return true
		}
	}
	return false
}

// messages is the queue of a conversation without cards, or nil. The lock is held.
func (o *Outbox) messages(c channel) *queue {
	c.card = false
	return o.queues[c]
}

// newest is the last known webhook of a conversation. The lock is held.
func (o *Outbox) newest(c channel) webhook {
	c.card = false
	w, _ := o.webhooks.Get(c)
	return w
}

// lend keeps a webhook for further messages, and offers it to the replies of its conversation. The lock is held.
func (o *Outbox) lend(c channel, w webhook) {
	if !w.isUsable(o.shared.Now()) {
		return
	}
	if c.card = false; !w.end.IsZero() && w.isAfter(o.newest(c)) {
		o.webhooks.Add(c, w)
	}
	for _, c.card = range []bool{false, true} {
		if q := o.queues[c]; q != nil && w.isAfter(q.newest) {
			q.newest = w
			q.lend()
		}
	}
}

// signalLeft needs the lock. Cards may wait for a message that left q.
func (o *Outbox) signalLeft(q *queue) {
	close(o.left)
	o.left = make(chan struct{})
	c := q.channel
	c.card = true
	if cards := o.queues[c]; cards != nil && cards != q {
		cards.notify()
	}
}

// HasUnmarked reports whether the outcome of a waiting reply's last attempt is not stored.
func (o *Outbox) HasUnmarked() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.queues {
		if slices.ContainsFunc(q.replies, func(p *pending) bool { return p.unmarked }) {
			return true
		}
	}
	return false
}

// Waiting returns the number of unsent replies.
func (o *Outbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, q := range o.queues {
		n += len(q.replies)
	}
	return n
}

// Queued implements turn.Outbox, by the session's conversation.
func (o *Outbox) Queued(key sessions.Key, card bool) bool {
	robot, id := key.Conversation()
	o.mu.Lock()
	defer o.mu.Unlock()
	c := channel{robot, id, card}
	return o.queues[o.behind(c, key)] != nil || card && o.messages(c).blocks(key)
}

const maxQueued = 2 * maxJoined

// Backpressured implements turn.Outbox, from maxQueued replies of the session's conversation on. Room there wakes the
// session.
func (o *Outbox) Backpressured(key sessions.Key) bool {
	robot, id := key.Conversation()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, card := range []bool{false, true} {
		q := o.queues[channel{robot, id, card}]
		if q == nil || q.length() < maxQueued {
			continue
		}
		if !slices.Contains(q.turnedAway, key) {
			q.turnedAway = append(q.turnedAway, key)
		}
		return true
	}
	return false
}

// wakeTurnedAway needs the lock.
func (o *Outbox) wakeTurnedAway(q *queue) {
	if q.length() >= maxQueued {
		return
	}
	for _, key := range q.turnedAway {
		o.opts.WakeSession(key)
	}
	q.turnedAway = nil
}

// behind lets a Markdown reply follow the session's card without a sent end: that reply may become Markdown too. The
// lock is held.
func (o *Outbox) behind(c channel, key sessions.Key) channel {
	cards := c
	cards.card = true
	if q := o.queues[cards]; q != nil && q.holds(key) {
		return cards
	}
	return c
}

// unknown returns the replies that are in no queue of their conversation, and hands newer leases to the others. The
// lock is held.
func (o *Outbox) unknown(c channel, replies []*pending) (added []*pending) {
	for _, p := range replies {
		known := false
		for _, card := range []bool{false, true} {
			q := o.queues[channel{c.robot, c.id, card}]
			known = q != nil && q.renew(p) || known
		}
		if !known {
			added = append(added, p)
		}
	}
	return added
}
