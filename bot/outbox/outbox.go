package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/sessions"
)

// Outbox sends committed replies. A reply goes out from memory once, right after its commit; each later attempt and
// part claims its row first. The queues keep the order of each conversation's replies and the time of the next
// attempt, so that they share the conversation's rate. A queue's goroutine ends with its last reply.
type Outbox struct {
	queues *queues
	sender sender
	wg     sync.WaitGroup
}

// Options are what an [Outbox] calls besides.
type Options struct {
	// Scheduled is called for a reply to a schedule that arrived, or whose person or conversation is gone.
	Scheduled   func(ctx context.Context, o sessions.Outgoing, arrived bool)
	WakeSession func(sessions.Key) // starts a turn of a session that was turned away or lost its lease
	Files       Files
}

// New returns an outbox that sends until ctx ends.
func New(ctx context.Context, p *parts.Shared, store Store, transport chat.Transport, stats Stats, opts Options) *Outbox {
	o := &Outbox{}
	o.queues = newQueues(p.Now, opts.WakeSession, func(q *queue) {
		o.wg.Add(1)
		go o.run(q)
	})
	files := uploads{p, transport, opts.Files, make(chan struct{}, maxUploads)}
	o.sender = sender{ctx, p, store, transport, stats, opts.Scheduled, files, o.queues}
	return o
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
	o.queues.push(replies)
}

// Resume implements turn.Outbox, once for every term.
func (o *Outbox) Resume(ctx context.Context, l sessions.Lease) error {
	if o.queues.isResumed(l) {
		return nil
	}
	outs, err := o.sender.store.Unsent(ctx, l)
	if err != nil {
		return err
	}
	for _, out := range outs { // in order: each one follows those before it, whatever their queues
		if added := o.queues.push([]*pending{newPending(zerolog.Ctx(ctx), l, out)}); len(added) > 0 && out.Took {
			o.sender.stats.ReplyResumed()
		}
	}
	o.queues.noteResumed(l)
	return nil
}

// Invalidate implements turn.Outbox.
func (o *Outbox) Invalidate(key sessions.Key) { o.queues.invalidate(key) }

// Forget removes the state of sessions that are not held: their next terms read the rows again.
func (o *Outbox) Forget(held func(sessions.Key) bool) { o.queues.forget(held) }

// Holds reports whether the session has unsent replies.
func (o *Outbox) Holds(key sessions.Key) bool { return o.queues.holds(key) }

// AwaitSent implements turn.Outbox. It waits for no reply that others pass: a reminder without calls may wait for a day.
func (o *Outbox) AwaitSent(ctx context.Context, key sessions.Key, to sessions.Target, atMost time.Duration) bool {
	return o.queues.awaitSent(ctx, key, to, atMost)
}

// HasUnmarked reports whether the outcome of a waiting reply's last attempt is not stored.
func (o *Outbox) HasUnmarked() bool { return o.queues.hasUnmarked() }

// Waiting returns the number of unsent replies.
func (o *Outbox) Waiting() int { return o.queues.length() }

// Queued implements turn.Outbox, by the session's conversation.
func (o *Outbox) Queued(key sessions.Key, card bool) bool { return o.queues.isQueued(key, card) }

// Backpressured implements turn.Outbox.
func (o *Outbox) Backpressured(key sessions.Key) bool { return o.queues.isBackpressured(key) }

// Close sends the replies that are due; the others stay in the storage.
func (o *Outbox) Close() { o.queues.close() }

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
		batch, wait, ok := o.queues.next(o.sender.ctx, q)
		if !ok {
			return
		}
		if wait <= 0 && !o.sender.shared.Leases.Trusted() {
			wait = trustRecheck
		}
		if wait <= 0 {
			o.sendBatch(q, batch)
		} else if !o.queues.pause(o.sender.ctx, q, wait) {
			return
		}
	}
}

const trustRecheck = 250 * time.Millisecond

// sendBatch sends a batch as one message. Each part claims the rows before it, which also records the parts that
// arrived. If rows must not be sent any more, the next batch is chosen.
func (o *Outbox) sendBatch(q *queue, batch []*pending) {
	var begun []sessions.Outgoing // the claim of the last part, if others follow
	a := attempt{more: true}
	for a.more {
		if !o.uploadFile(q, batch) {
			return
		}
		ctx, stop := context.WithTimeout(o.sender.ctx, o.sendTime(batch[0])) // before the claim: an erasure counts from there
		outs, err := o.claim(q, batch, a.outcome.Carrier)
		if err != nil || len(outs) < len(batch) || !o.sender.shared.Leases.Trusted() {
			stop()
			o.interrupt(q, batch, begun, a, err)
			return
		}
		o.queues.restartChanged(batch, outs)
		a, begun = o.sender.sendPart(ctx, q, batch, outs), outs
		stop()
		o.apply(q, batch, a)
	}
}

// uploadFile reports false if the batch has to wait, because its file has.
func (o *Outbox) uploadFile(q *queue, batch []*pending) bool {
	ready, a := o.sender.files.prepare(o.sender.ctx, batch[0])
	if a != nil {
		o.sender.recordOutcome(batch, []sessions.Outgoing{{Attempts: batch[0].attempts}}, a.outcome) // lest the storage takes the reply for one that was left
		o.queues.apply(q, batch, *a)
	}
	return ready
}

// sendTime is the time of an attempt. The first one began with its commit, which may have taken long: then it is
// claimed again.
func (o *Outbox) sendTime(first *pending) time.Duration {
	if first.fresh == nil {
		return sessions.SendTime
	}
	if left := sessions.SendTime - o.sender.shared.Now().Sub(first.fresh.Created); left > sessions.SendTime/2 {
		return min(left, sessions.SendTime)
	}
	first.fresh = nil
	return sessions.SendTime
}

// interrupt ends an attempt before a part. The rows keep the number of parts that arrived.
func (o *Outbox) interrupt(q *queue, batch []*pending, begun []sessions.Outgoing, a attempt, err error) {
	next := o.sender.shared.Now()
	if err != nil {
		batch[0].log.Warn().Err(err).Msg("Replies not claimed, trying again")
		next = next.Add(pauseAfter(0, &chat.SendError{}))
		o.queues.pauseUntil(q, next)
	}
	if begun == nil {
		return
	}
	a = attempt{outcome: sessions.SendOutcome{Maybe: len(batch) > 1, Part: a.outcome.Part, Via: a.outcome.Via, Carrier: a.outcome.Carrier, Error: errBetweenParts.Error(), NextAt: next}}
	o.sender.recordOutcome(batch, begun, a.outcome)
	o.apply(q, batch, a)
}

var errBetweenParts = errors.New("interrupted between two parts")

// claim returns the rows as they are now, and drops replies without one. carrier is the key of the part before.
func (o *Outbox) claim(q *queue, batch []*pending, carrier string) ([]sessions.Outgoing, error) {
	if first := batch[0].fresh; first != nil {
		batch[0].fresh = nil
		return []sessions.Outgoing{*first}, nil
	}
	rows, try := map[rowID]sessions.Outgoing{}, sessions.SendAttempt{Joint: jointKey(batch), Carrier: carrier}
	if len(batch) == 1 { // parts of a joined message are not parts of its replies
		try.Part, try.Nonce = batch[0].part, batch[0].nonce
	}
	var lost []sessions.Lease
	for lease, ids := range o.queues.leases(batch) {
		try.IDs = ids
		one, stop := context.WithTimeout(o.sender.ctx, o.sender.shared.CommitTimeout)
		claimed, err := o.sender.store.Claim(one, lease, try)
		stop()
		if o.sender.shared.Leases.Check(lease.Key, err) != nil && !errors.Is(err, sessions.ErrLeaseLost) {
			return nil, err
		}
		if err != nil {
			lost = append(lost, lease)
		}
		for _, out := range claimed {
			rows[rowID{out.Key, out.ID}] = out
		}
	}
	outs := o.queues.claimed(batch, rows)
	if len(outs) < len(batch) {
		gone := slices.DeleteFunc(slices.Clone(batch), func(p *pending) bool { _, ok := rows[p.rowID]; return ok })
		o.drop(q, gone, lost)
	}
	return outs, nil
}

// drop also removes all replies whose lease is lost, and wakes their sessions, which then ask the storage for their
// owner.
func (o *Outbox) drop(q *queue, gone []*pending, lost []sessions.Lease) {
	for _, p := range o.queues.remove(q, gone, lost) {
		if slices.Contains(lost, p.lease) {
			p.log.Info().Int64("reply", p.id).Msg("Reply left to the next owner of its session")
		} else {
			p.log.Info().Int64("reply", p.id).Msg("Reply erased or settled before it was sent")
		}
		if p.owedMark != nil {
			o.sender.storeMark(p.log.WithContext(o.sender.ctx), *p.owedMark, true)
		}
		p.runThen()
	}
	for _, l := range lost {
		o.queues.invalidate(l.Key)
		o.queues.wake(l.Key)
	}
}

// apply starts the work after an attempt before a reply leaves the queue: the process is not idle in between.
func (o *Outbox) apply(q *queue, batch []*pending, a attempt) {
	if !a.more {
		for _, p := range batch {
			p.runThen()
		}
	}
	o.queues.apply(q, batch, a)
}
