package outbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/sessions"
)

// Outbox sends committed replies. A reply goes out from memory once, right after its commit; each later attempt and
// part claims its row first. The queues keep the order of each conversation's replies and the time of the next
// attempt, so that they share the conversation's rate. A queue's goroutine ends with its last reply.
type Outbox struct {
	ctx       context.Context
	shared    *parts.Shared
	store     sessions.Outbox
	transport chat.Transport
	stats     Stats
	opts      Options

	mu      sync.Mutex
	queues  map[channel]*queue
	resumed map[sessions.Key]int64 // terms under which unsent rows were read
	left    chan struct{}          // closed when replies leave a queue or others may pass them, and replaced
	closed  bool
	wg      sync.WaitGroup

	webhooks *lru.Cache[channel, webhook] // newest of each conversation, for messages that answer no question
}

// A reply to a forgotten conversation without a webhook takes an API call.
const maxWebhooks = 4096

type rowID struct {
	key sessions.Key
	id  int64
}

// Send implements turn.Outbox, and never blocks. The attempt that the commit counted goes from memory if the conversation's queue is
// empty.
func (o *Outbox) Send(ctx context.Context, l sessions.Lease, outs []sessions.Outgoing, then func()) {
	if len(outs) == 0 {
		then()
		return
	}
	var replies []*pending
	for _, out := range outs {
		replies = append(replies, newPending(zerolog.Ctx(ctx), l, out))
	}
	replies[len(replies)-1].then = then
	if outs[0].Attempts == 1 {
		replies[0].fresh = &outs[0]
	}
	o.push(replies)
}

// Resume implements turn.Outbox, once for every term.
func (o *Outbox) Resume(ctx context.Context, l sessions.Lease) error {
	o.mu.Lock()
	done := o.resumed[l.Key] == l.Term
	o.mu.Unlock()
	if done {
		return nil
	}
	outs, err := o.store.Unsent(ctx, l)
	if err != nil {
		return err
	}
	for _, out := range outs { // in order: each one follows those before it, whatever their queues
		if added := o.push([]*pending{newPending(zerolog.Ctx(ctx), l, out)}); len(added) > 0 && out.Took {
			o.stats.ReplyResumed()
		}
	}
	o.mu.Lock()
	o.resumed[l.Key] = l.Term
	o.mu.Unlock()
	return nil
}

// Invalidate implements turn.Outbox.
func (o *Outbox) Invalidate(key sessions.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.resumed, key)
}

// Forget removes the state of sessions that are not held: their next terms read the rows again.
func (o *Outbox) Forget(held func(sessions.Key) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.resumed, func(key sessions.Key, _ int64) bool { return !held(key) })
}

// push returns newly queued replies, and gives the session's queued ones the newer lease.
func (o *Outbox) push(replies []*pending) (added []*pending) {
	if len(replies) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range replies {
		defer o.lend(p.channel, p.webhook) // also to themselves
	}
	c := o.behind(replies[0].channel, replies[0].key)
	if added = o.unknown(c, replies); len(added) == 0 {
		return nil
	}
	q := o.queues[c]
	if q != nil {
		for _, p := range added {
			p.fresh = nil // other replies are before it
		}
		q.replies = append(q.replies, added...)
		q.notify()
		return added
	}
	if o.closed {
		return nil // the rows wait for the next process
	}
	q = &queue{channel: c, wake: make(chan struct{}, 1), replies: added, newest: o.newest(c)}
	o.queues[c] = q
	o.wg.Add(1)
	go o.run(q)
	return added
}

// Close sends the replies that are due; the others stay in the storage.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, q := range o.queues {
		q.notify()
	}
}

// Wait returns when no queue is running, or with ctx's cause.
func (o *Outbox) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { o.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o *Outbox) run(q *queue) {
	defer o.wg.Done()
	for {
		batch, wait, ok := o.next(q)
		if !ok {
			return
		}
		if wait <= 0 && !o.shared.Leases.Trusted() {
			wait = trustRecheck
		}
		if wait <= 0 {
			o.sendBatch(q, batch)
		} else if !o.pause(q, wait) {
			return
		}
	}
}

const trustRecheck = 250 * time.Millisecond

// heldRecheck is for a queue whose replies are all held back: the other queue wakes it.
const heldRecheck = time.Minute

// next reports false if the queue is empty and removed, or the process ends with unsent replies.
func (o *Outbox) next(q *queue) (batch []*pending, wait time.Duration, ok bool) {
	now := o.shared.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(q.replies) == 0 {
		delete(o.queues, q.channel)
		return nil, 0, false
	}
	if o.ctx.Err() != nil {
		return nil, 0, false
	}
	batch, due := q.nextBatch(o.messages(q.channel).blocks)
	if len(batch) == 0 {
		return nil, heldRecheck, true
	}
	return batch, due.Sub(now), true
}

// pause also ends with another reply; false: the outbox closes.
func (o *Outbox) pause(q *queue, d time.Duration) bool {
	o.mu.Lock()
	closed := o.closed
	for _, p := range q.replies {
		p.fresh = nil
	}
	o.mu.Unlock()
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
	case <-o.ctx.Done():
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	q.waited = q.waited || waited
	return !o.closed
}

// sendBatch sends a batch as one message. Each part claims the rows before it, which also records the parts that
// arrived. If rows must not be sent any more, the next batch is chosen.
func (o *Outbox) sendBatch(q *queue, batch []*pending) {
	var begun []sessions.Outgoing // the claim of the last part, if others follow
	v := sendResult{more: true}
	for v.more {
		ctx, stop := context.WithTimeout(o.ctx, o.sendTime(batch[0])) // before the claim: an erasure counts from there
		outs, err := o.claim(q, batch)
		if err != nil || len(outs) < len(batch) || !o.shared.Leases.Trusted() {
			stop()
			o.interrupt(q, batch, begun, v, err)
			return
		}
		o.restartChanged(batch, outs)
		v, begun = o.sendPart(ctx, q, batch, outs), outs
		stop()
		o.applyResult(q, batch, v)
	}
}

// sendTime is the time of an attempt. The first one began with its commit, which may have taken long: then it is
// claimed again.
func (o *Outbox) sendTime(first *pending) time.Duration {
	if first.fresh == nil {
		return sessions.SendTime
	}
	if left := sessions.SendTime - o.shared.Now().Sub(first.fresh.Created); left > sessions.SendTime/2 {
		return min(left, sessions.SendTime)
	}
	first.fresh = nil
	return sessions.SendTime
}

// interrupt ends an attempt before a part. The rows keep the number of parts that arrived.
func (o *Outbox) interrupt(q *queue, batch []*pending, begun []sessions.Outgoing, v sendResult, err error) {
	next := o.shared.Now()
	if err != nil {
		batch[0].log.Warn().Err(err).Msg("Replies not claimed, trying again")
		next = next.Add(pauseAfter(0, &chat.SendError{}))
		o.mu.Lock()
		q.until = next
		o.mu.Unlock()
	}
	if begun == nil {
		return
	}
	v.more, v.maybe, v.retry = false, len(batch) > 1, next
	o.recordOutcome(batch, begun, sessions.Settled{Maybe: v.maybe, Part: v.part, Via: v.via, Error: errBetweenParts.Error(), NextAt: next})
	o.applyResult(q, batch, v)
}

var errBetweenParts = errors.New("interrupted between two parts")

// claim returns the rows as they are now, and drops replies without one.
func (o *Outbox) claim(q *queue, batch []*pending) ([]sessions.Outgoing, error) {
	if first := batch[0].fresh; first != nil {
		batch[0].fresh = nil
		return []sessions.Outgoing{*first}, nil
	}
	o.mu.Lock()
	ids := map[sessions.Lease][]int64{}
	for _, p := range batch {
		ids[p.lease] = append(ids[p.lease], p.id)
	}
	o.mu.Unlock()
	rows, try := map[rowID]sessions.Outgoing{}, sessions.Try{Joint: jointKey(batch)}
	if len(batch) == 1 { // parts of a joined message are not parts of its replies
		try.Part, try.Nonce = batch[0].part, batch[0].nonce
	}
	var lost []sessions.Lease
	for lease, ids := range ids {
		try.IDs = ids
		one, stop := context.WithTimeout(o.ctx, o.shared.CommitTimeout)
		claimed, err := o.store.Claim(one, lease, try)
		stop()
		if o.shared.Leases.Check(lease.Key, err) != nil && !errors.Is(err, sessions.ErrLeaseLost) {
			return nil, err
		}
		if err != nil {
			lost = append(lost, lease)
		}
		for _, out := range claimed {
			rows[rowID{out.Key, out.ID}] = out
		}
	}
	var outs []sessions.Outgoing
	o.mu.Lock()
	for _, p := range batch {
		if out, ok := rows[p.rowID]; ok {
			out.Maybe = out.Maybe || p.maybe
			outs = append(outs, out)
		}
	}
	o.mu.Unlock()
	if len(outs) < len(batch) {
		gone := slices.DeleteFunc(slices.Clone(batch), func(p *pending) bool { _, ok := rows[p.rowID]; return ok })
		o.drop(q, gone, lost)
	}
	return outs, nil
}

// restartChanged sends a message again from its first part if an erasure changed one of its replies.
func (o *Outbox) restartChanged(batch []*pending, outs []sessions.Outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.EqualFunc(batch, outs, func(p *pending, out sessions.Outgoing) bool { return p.nonce == out.Reply.Nonce }) {
		return
	}
	for i, p := range batch {
		p.maybe = p.maybe || p.part > 0
		outs[i].Maybe = outs[i].Maybe || p.maybe
		p.nonce, p.part, p.joint = outs[i].Reply.Nonce, 0, ""
	}
}

// drop also removes all replies whose lease is lost, and wakes their sessions, which then ask the storage for their
// owner.
func (o *Outbox) drop(q *queue, gone []*pending, lost []sessions.Lease) {
	o.mu.Lock()
	var dropped []*pending
	q.replies = slices.DeleteFunc(q.replies, func(p *pending) bool {
		left := slices.Contains(lost, p.lease)
		if left || slices.Contains(gone, p) && !slices.ContainsFunc(lost, func(l sessions.Lease) bool { return l.Key == p.key }) {
			dropped = append(dropped, p)
			return true
		}
		return false
	})
	o.wakeTurnedAway(q)
	o.signalLeft(q)
	o.mu.Unlock()
	for _, p := range dropped {
		if slices.Contains(lost, p.lease) {
			p.log.Info().Int64("reply", p.id).Msg("Reply left to the next owner of its session")
		} else {
			p.log.Info().Int64("reply", p.id).Msg("Reply erased or settled before it was sent")
		}
		if p.owedMark != nil {
			o.storeMark(p.log.WithContext(o.ctx), *p.owedMark, true)
		}
		p.runThen()
	}
	for _, l := range lost {
		o.Invalidate(l.Key)
		o.opts.WakeSession(l.Key)
	}
}

// applyResult starts the work after an attempt before a reply leaves the queue: the process is not idle in between.
func (o *Outbox) applyResult(q *queue, batch []*pending, v sendResult) {
	if !v.more {
		for _, p := range batch {
			p.runThen()
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	q.waited = false
	if v.done {
		q.replies = slices.DeleteFunc(q.replies, func(p *pending) bool { return slices.Contains(batch, p) })
		o.wakeTurnedAway(q)
		o.signalLeft(q)
		return
	}
	failed := failures(batch)
	switch {
	case v.more:
		failed = 0
	case v.failed:
		failed++
	}
	aside := v.aside || v.failed && failed >= maxFailures
	paused := !v.split && !v.refused && !aside && !v.more
	if paused && !q.card {
		q.until = v.retry
	}
	for _, p := range batch {
		p.maybe, p.failures, p.aside = p.maybe || v.maybe, failed, v.aside // replies of one message step aside together
		if aside || paused || q.card && !v.more {                          // a pause of one session's message must not leave the card of another unfinished
			p.next = v.retry
		}
		switch {
		case v.split:
			p.alone, p.joint, p.part = true, "", 0
		case v.refused:
			p.refusals, p.next = p.refusals+1, v.retry
			p.part = max(p.part, v.part)
		default:
			p.part = max(p.part, v.part)
			if (p.maybe || p.part > 0) && len(batch) > 1 {
				p.joint = jointKey(batch)
			}
		}
	}
	q.lend() // a webhook may have come during the attempt
	if v.refused || aside {
		o.wakeTurnedAway(q)
		o.signalLeft(q)
	}
}
