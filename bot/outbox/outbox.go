package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/lease"
)

// Outbox sends what turns committed. The rows in the storage decide what is sent: a reply goes out from memory once, right
// after its commit; each later try and each later part claims its row first. This side keeps the order of each conversation's replies and
// when the next one is due, so that they share the conversation's rate. A queue's goroutine ends with its last reply.
type Outbox struct {
	ctx       context.Context
	store     sessions.Outbox
	leases    *lease.Holder
	transport chat.Transport
	stats     Stats
	answer    func(sessions.Key) // has a session answer that was turned away, or ask the storage whose it is
	settle    time.Duration      // how long one claim or mark may take
	now       func() time.Time   // the storage's clock

	Mu      sync.Mutex
	Queues  map[channel]*queue
	Resumed map[sessions.Key]int64 // the term under which a session's unsent rows were taken up
	closed  bool
	wg      sync.WaitGroup
}

type rowID struct {
	key sessions.Key
	id  int64
}

// channel is where replies share a rate: one conversation of one robot.
type channel struct {
	robot sessions.RobotCode
	id    sessions.ConversationID
}

func channelOf(o sessions.Outgoing) channel {
	return channel{o.Reply.Target.RobotCode, o.Reply.Target.ConversationID}
}

// Send queues a reply that was committed under a lease; then runs after its first try, or at once where there is none. It
// never blocks. The try that the commit counted goes from memory, where nothing else of the conversation waits.
func (o *Outbox) Send(ctx context.Context, l sessions.Lease, outs []sessions.Outgoing, then func()) {
	if len(outs) == 0 {
		then()
		return
	}
	var parcels []*parcel
	for _, out := range outs {
		parcels = append(parcels, newParcel(zerolog.Ctx(ctx), l, out))
	}
	parcels[len(parcels)-1].then = then
	if outs[0].Attempts == 1 {
		parcels[0].fresh = &outs[0]
	}
	o.push(channelOf(outs[0]), parcels)
}

// Resume takes up what an earlier owner of the session left unsent, once for every term.
func (o *Outbox) Resume(ctx context.Context, l sessions.Lease) error {
	o.Mu.Lock()
	done := o.Resumed[l.Key] == l.Term
	o.Mu.Unlock()
	if done {
		return nil
	}
	outs, err := o.store.Unsent(ctx, l)
	if err != nil {
		return fmt.Errorf("read unsent replies of session %s: %w", l.Key, err)
	}
	took := map[int64]bool{}
	parcels := map[channel][]*parcel{}
	for _, out := range outs {
		c := channelOf(out)
		parcels[c], took[out.ID] = append(parcels[c], newParcel(zerolog.Ctx(ctx), l, out)), out.Took
	}
	for c, list := range parcels {
		for _, p := range o.push(c, list) {
			if took[p.id] {
				o.stats.ReplyResumed()
			}
		}
	}
	o.Mu.Lock()
	o.Resumed[l.Key] = l.Term
	o.Mu.Unlock()
	return nil
}

// Doubt has the session's unsent rows read again: a commit may have left one that this side does not know.
func (o *Outbox) Doubt(key sessions.Key) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	delete(o.Resumed, key)
}

// Forget removes what is known of sessions whose leases this replica gave up or lost: the next term reads their rows again.
func (o *Outbox) Forget(held func(sessions.Key) bool) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	maps.DeleteFunc(o.Resumed, func(key sessions.Key, _ int64) bool { return !held(key) })
}

// push queues replies of one conversation and returns those that were not queued before. From now on those of the session
// that were are claimed by the newer lease.
func (o *Outbox) push(c channel, parcels []*parcel) (added []*parcel) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	q := o.Queues[c]
	begun := q == nil
	if begun {
		if o.closed {
			return nil // the rows wait for the next process
		}
		q = &queue{wake: make(chan struct{}, 1)}
		o.Queues[c] = q
	}
	for _, p := range parcels {
		known := false
		for _, x := range q.parcels {
			if x.key == p.key && x.lease.Term < p.lease.Term {
				x.lease = p.lease
			}
			if x.rowID == p.rowID {
				known, x.maybe = true, x.maybe || p.maybe
			}
		}
		if known {
			continue
		}
		if !begun {
			p.fresh = nil // it waits behind others, if only for a moment
		}
		q.parcels, added = append(q.parcels, p), append(added, p)
	}
	if begun {
		o.wg.Add(1)
		go o.run(c, q)
	} else {
		q.Poke()
	}
	return added
}

// Close lets what can be sent now go out; replies that wait for a retry stay in the storage.
func (o *Outbox) Close() {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.closed = true
	for _, q := range o.Queues {
		q.Poke()
	}
}

// Wait returns when nothing is being sent, or with ctx's cause.
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

// Holds reports whether replies of a session are not sent yet.
func (o *Outbox) Holds(key sessions.Key) bool {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	for _, q := range o.Queues {
		if slices.ContainsFunc(q.parcels, func(p *parcel) bool { return p.key == key }) {
			return true
		}
	}
	return false
}

// Unmarked reports whether the storage does not know the outcome of a try of a reply that waits.
func (o *Outbox) Unmarked() bool {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	for _, q := range o.Queues {
		if slices.ContainsFunc(q.parcels, func(p *parcel) bool { return p.unmarked }) {
			return true
		}
	}
	return false
}

// Waiting is the number of replies that are not sent yet.
func (o *Outbox) Waiting() int {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	n := 0
	for _, q := range o.Queues {
		n += len(q.parcels)
	}
	return n
}

// Queued reports whether replies of a session's conversation wait: one more has to wait behind them.
func (o *Outbox) Queued(key sessions.Key) bool {
	robot, id := key.Conversation()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return o.Queues[channel{robot, id}] != nil
}

// MaxQueued is how many replies of one conversation are held in memory before it is answered no further.
const MaxQueued = 2 * maxJoined

// Crowded reports whether a session's conversation has so many replies waiting that more of them would only wait behind
// those: its messages wait in the storage instead. It is called back when there is room.
func (o *Outbox) Crowded(key sessions.Key) bool {
	robot, id := key.Conversation()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	q := o.Queues[channel{robot, id}]
	if q == nil || q.inLine() < MaxQueued {
		return false
	}
	if !slices.Contains(q.away, key) {
		q.away = append(q.away, key)
	}
	return true
}

// callBack wakes what was turned away, once there is room. The lock is held.
func (o *Outbox) callBack(q *queue) {
	if q.inLine() >= MaxQueued {
		return
	}
	for _, key := range q.away {
		o.answer(key)
	}
	q.away = nil
}

// run sends a conversation's replies until none is left. What is being tried stays in the queue.
func (o *Outbox) run(c channel, q *queue) {
	defer o.wg.Done()
	for {
		batch, wait, ok := o.next(c, q)
		if !ok {
			return
		}
		if wait <= 0 && !o.leases.Trusted() {
			wait = untrusted
		}
		if wait <= 0 {
			o.attempt(q, batch)
		} else if !o.pause(q, wait) {
			return
		}
	}
}

// untrusted is how long replies wait before the leases are looked at again that are in doubt.
const untrusted = 250 * time.Millisecond

// next is the next message of a queue and how long it waits. ok is false where none is left, and then the queue is gone, or
// where the process ends: what stays in the queue then is what was not sent.
func (o *Outbox) next(c channel, q *queue) (batch []*parcel, wait time.Duration, ok bool) {
	now := o.now()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if len(q.parcels) == 0 {
		delete(o.Queues, c)
		return nil, 0, false
	}
	if o.ctx.Err() != nil {
		return nil, 0, false
	}
	batch, due := q.pick()
	return batch, due.Sub(now), true
}

// pause waits for the next try, or for another reply; false: the outbox closes.
func (o *Outbox) pause(q *queue, d time.Duration) bool {
	o.Mu.Lock()
	closed := o.closed
	for _, p := range q.parcels {
		p.fresh = nil
	}
	o.Mu.Unlock()
	if closed {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		q.piled = true
	case <-q.wake:
	case <-o.ctx.Done():
		return false
	}
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return !o.closed
}

// attempt sends a batch as one message, part by part. Each part has a claim of the rows before it, which also records the
// parts that arrived. Where one of the rows is not to be sent any more, it leaves the queue instead, and the rest is picked
// again.
func (o *Outbox) attempt(q *queue, batch []*parcel) {
	var begun []sessions.Outgoing // the claim of the last part, where others are left
	v := verdict{more: true}
	for v.more {
		outs, err := o.claim(q, batch)
		if err != nil || len(outs) < len(batch) || !o.leases.Trusted() {
			o.interrupt(q, batch, begun, v, err)
			return
		}
		o.renew(batch, outs)
		v, begun = o.try(batch, outs), outs
		o.after(q, batch, v)
	}
	for _, p := range batch {
		p.tried()
	}
}

// interrupt ends an attempt before its first part, or between two of them: then the rows keep the parts that arrived.
func (o *Outbox) interrupt(q *queue, batch []*parcel, begun []sessions.Outgoing, v verdict, err error) {
	retry := o.now()
	if err != nil {
		zerolog.Ctx(o.ctx).Warn().Err(err).Msg("Replies not claimed, trying again")
		retry = retry.Add(backoff(0, &chat.SendError{}))
		o.Mu.Lock()
		q.Until = retry
		o.Mu.Unlock()
	}
	if begun == nil {
		return
	}
	v.more, v.maybe, v.retry = false, len(batch) > 1, retry
	o.mark(batch, begun, sessions.Settled{Maybe: v.maybe, Part: v.part, Via: v.via, Error: errBetweenParts.Error(), NextAt: retry})
	o.after(q, batch, v)
	for _, p := range batch {
		p.tried()
	}
}

// errBetweenParts is the error in the row of a reply whose next part could not be claimed.
var errBetweenParts = errors.New("interrupted between two parts")

// claim takes the rows of a batch for one try and returns them as they are now, or fewer: what did not come back is dropped.
func (o *Outbox) claim(q *queue, batch []*parcel) ([]sessions.Outgoing, error) {
	if first := batch[0].fresh; first != nil {
		batch[0].fresh = nil
		return []sessions.Outgoing{*first}, nil
	}
	o.Mu.Lock()
	ids := map[sessions.Lease][]int64{}
	for _, p := range batch {
		ids[p.lease] = append(ids[p.lease], p.id)
	}
	o.Mu.Unlock()
	rows, try := map[rowID]sessions.Outgoing{}, sessions.Try{Joint: jointKey(batch)}
	if len(batch) == 1 { // parts of a joined message are not parts of its replies
		try.Part, try.Nonce = batch[0].part, batch[0].nonce
	}
	var lost []sessions.Lease
	for lease, ids := range ids {
		try.IDs = ids
		one, stop := context.WithTimeout(o.ctx, o.settle)
		claimed, err := o.store.Claim(one, lease, try)
		stop()
		if o.leases.Check(lease.Key, err) != nil && !errors.Is(err, sessions.ErrLeaseLost) {
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
	o.Mu.Lock()
	for _, p := range batch {
		if out, ok := rows[p.rowID]; ok {
			out.Maybe = out.Maybe || p.maybe
			outs = append(outs, out)
		}
	}
	o.Mu.Unlock()
	if len(outs) < len(batch) {
		gone := slices.DeleteFunc(slices.Clone(batch), func(p *parcel) bool { _, ok := rows[p.rowID]; return ok })
		o.drop(q, gone, lost)
	}
	return outs, nil
}

// renew has a message begin with its first part where an erasure changed the text of one of its replies.
func (o *Outbox) renew(batch []*parcel, outs []sessions.Outgoing) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if slices.EqualFunc(batch, outs, func(p *parcel, out sessions.Outgoing) bool { return p.nonce == out.Reply.Nonce }) {
		return
	}
	for i, p := range batch {
		p.maybe = p.maybe || p.part > 0
		outs[i].Maybe = outs[i].Maybe || p.maybe
		p.nonce, p.part, p.joint = outs[i].Reply.Nonce, 0, ""
	}
}

// drop takes replies out of a queue that are not to be sent any more, and all those whose lease is lost: their sessions are
// woken, to ask the storage whose they are.
func (o *Outbox) drop(q *queue, gone []*parcel, lost []sessions.Lease) {
	o.Mu.Lock()
	var dropped []*parcel
	q.parcels = slices.DeleteFunc(q.parcels, func(p *parcel) bool {
		left := slices.Contains(lost, p.lease)
		if left || slices.Contains(gone, p) && !slices.ContainsFunc(lost, func(l sessions.Lease) bool { return l.Key == p.key }) {
			dropped = append(dropped, p)
			return true
		}
		return false
	})
	o.callBack(q)
	o.Mu.Unlock()
	for _, p := range dropped {
		if slices.Contains(lost, p.lease) {
			p.log.Info().Int64("reply", p.id).Msg("Reply left to the next owner of its session")
		} else {
			p.log.Info().Int64("reply", p.id).Msg("Reply erased or settled before it was sent")
		}
		if p.owed != nil {
			o.record(p.log.WithContext(o.ctx), *p.owed, true)
		}
		p.tried()
	}
	for _, l := range lost {
		o.Doubt(l.Key)
		o.answer(l.Key)
	}
}

// after notes the outcome of a try of a batch.
func (o *Outbox) after(q *queue, batch []*parcel, v verdict) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	q.piled = false
	if v.done {
		q.parcels = slices.DeleteFunc(q.parcels, func(p *parcel) bool { return slices.Contains(batch, p) })
		o.callBack(q)
		return
	}
	failed := failures(batch)
	switch {
	case v.more:
		failed = 0
	case v.failed:
		failed++
	}
	aside := v.failed && failed >= maxFailures
	if !v.apart && !v.refused && !aside && !v.more {
		q.Until = v.retry
	}
	for _, p := range batch {
		p.maybe, p.failures = p.maybe || v.maybe, failed // replies of one message step aside together
		if aside {
			p.next = v.retry
		}
		switch {
		case v.apart:
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
	if v.refused {
		o.callBack(q)
	}
}
