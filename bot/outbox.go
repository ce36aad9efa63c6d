package bot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// outbox sends what turns committed. Rows wait in the storage; this side keeps one queue for each conversation that
// has unsent replies, so that replies arrive in order and share the conversation's rate. A queue's goroutine ends
// with its last reply.
type outbox struct {
	ctx       context.Context
	store     sessions.Outbox
	leases    *sessions.Leases
	transport Transport
	metrics   *metrics
	tally     *ledger
	answer    func(sessions.Key) // has a session answer that was turned away
	settle    time.Duration      // how long one settling may take
	now       func() time.Time   // the storage's clock

	mu       sync.Mutex
	queues   map[conversation]*queue
	resumed  map[sessions.Key]tenure // under what a session's unsent rows were taken up
	settled  rowSet
	doubtful rowSet // dropped here, perhaps after they had arrived
	closed   bool
	unmarked atomic.Bool // the storage does not know of a try that failed
	wg       sync.WaitGroup
}

// tenure is what a session's replies are sent by: the lease's term, and the gaps in trust up to when it was read.
type tenure struct {
	term int64
	gaps int
}

// rowSet is the latest of some replies. Those that this process settled for good are one: a list of unsent rows that was
// read before a mark and is taken up after it must not send the reply again.
type rowSet struct {
	ring [1024]rowID
	next int
	set  map[rowID]bool
}

type rowID struct {
	key sessions.Key
	id  int64
}

func (s *rowSet) add(r rowID) {
	if s.set == nil {
		s.set = map[rowID]bool{}
	}
	delete(s.set, s.ring[s.next])
	s.ring[s.next], s.set[r] = r, true
	s.next = (s.next + 1) % len(s.ring)
}

type conversation struct {
	robot sessions.RobotCode
	id    sessions.ConversationID
}

type queue struct {
	parcels []parcel
	wake    chan struct{}  // the outbox closes
	away    []sessions.Key // what was turned away for the length of the queue
	// repeat is how many parcels at the head were sent as one message that may have arrived: they go out again as
	// they were, under the same key, or DingTalk would take the message for another one. part is how much of it arrived.
	repeat int
	part   int
}

// parcel is one reply on its way, and what to do once it was tried for the first time.
type parcel struct {
	out  sessions.Outgoing
	log  *zerolog.Logger // of the turn that it came from
	then func()
	gaps int // in trust, up to when the reply was surely this replica's to send
}

// send queues replies; then runs after the last of them was tried, or at once where there is none. It never blocks.
func (o *outbox) send(ctx context.Context, outs []sessions.Outgoing, then func()) {
	for i, out := range outs {
		o.mu.Lock()
		gaps := o.resumed[out.Key].gaps // of the turn's beginning: the commit told that the lease still stood, not since when
		o.mu.Unlock()
		p := parcel{out: out, log: zerolog.Ctx(ctx), gaps: gaps}
		if i == len(outs)-1 {
			p.then = then
		}
		o.push(p)
	}
	if len(outs) == 0 {
		then()
	}
}

// resume takes up what an earlier owner of the session left unsent, once for every term, and again after a gap in trust.
func (o *outbox) resume(ctx context.Context, l sessions.Lease) error {
	by := tenure{l.Term, o.leases.Gaps()}
	o.mu.Lock()
	done := o.resumed[l.Key] == by
	o.mu.Unlock()
	if done {
		return nil
	}
	outs, err := o.store.Unsent(ctx, l)
	if err != nil {
		return fmt.Errorf("read unsent replies of session %s: %w", l.Key, err)
	}
	for _, out := range outs {
		if !o.push(parcel{out: out, log: zerolog.Ctx(ctx), gaps: by.gaps}) {
			continue
		}
		if out.Took {
			o.tally.resumed.Add(1)
		}
	}
	o.mu.Lock()
	o.resumed[l.Key] = by
	o.mu.Unlock()
	return nil
}

// doubt has the session's unsent rows read again: a commit may have left one that this side does not know.
func (o *outbox) doubt(key sessions.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.resumed, key)
}

// push queues a reply, and reports whether it was not queued or settled before.
func (o *outbox) push(p parcel) bool {
	t := p.out.Reply.Target
	c := conversation{t.RobotCode, t.ConversationID}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settled.set[rowID{p.out.Key, p.out.ID}] {
		return false
	}
	p.out.Maybe = p.out.Maybe || o.doubtful.set[rowID{p.out.Key, p.out.ID}]
	q := o.queues[c]
	if q == nil {
		if o.closed {
			return false // the row waits for the next process
		}
		q = &queue{wake: make(chan struct{}, 1)}
		o.queues[c] = q
		o.wg.Add(1)
		go o.run(c, q)
	}
	known := func(x parcel) bool { return x.out.ID == p.out.ID && x.out.Key == p.out.Key }
	if i := slices.IndexFunc(q.parcels, known); i >= 0 {
		x := &q.parcels[i]
		x.gaps, x.out.Maybe = max(x.gaps, p.gaps), x.out.Maybe || p.out.Maybe
		return false
	}
	q.parcels = append(q.parcels, p)
	return true
}

// close lets what can be sent now go out; replies that wait for a retry stay in the storage.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, q := range o.queues {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// wait returns when nothing is being sent, or with ctx's cause.
func (o *outbox) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { o.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// holds reports whether replies of a session are not sent yet.
func (o *outbox) holds(key sessions.Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.queues {
		if slices.ContainsFunc(q.parcels, func(p parcel) bool { return p.out.Key == key }) {
			return true
		}
	}
	return false
}

// waiting is the number of replies that are not sent yet.
func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, q := range o.queues {
		n += len(q.parcels)
	}
	return n
}

// run sends a conversation's replies until none is left. The first parcel stays at the head while it is tried.
func (o *outbox) run(c conversation, q *queue) {
	defer o.wg.Done()
	limit := 1
	for {
		batch, ok := o.head(c, q, limit)
		if !ok {
			return
		}
		limit = 1
		wait := batch[0].out.NextAt.Sub(o.now()) // as an earlier process was told
		if wait <= 0 && o.drop(q) {
			continue
		}
		if wait <= 0 {
			v := o.try(q, batch)
			for _, p := range batch {
				if p.then != nil {
					p.then()
				}
			}
			o.after(q, len(batch), v)
			if v.done || v.apart {
				continue
			}
			wait = v.retry.Sub(o.now())
		}
		if !o.pause(q, wait) {
			return
		}
		// What piled up meanwhile goes out as one message: the conversation's rate is the bottleneck.
		limit = maxJoined
	}
}

// drop takes the replies out of a queue that may be another replica's to send by now, since the leases are not trusted or
// were not for a while: their sessions are woken, to ask the storage whose they are. It reports whether there were any.
func (o *outbox) drop(q *queue) bool {
	gaps, trusted := o.leases.Gaps(), o.leases.Trusted()
	stale := func(p parcel) bool { return !trusted || p.gaps != gaps }
	o.mu.Lock()
	if !slices.ContainsFunc(q.parcels, stale) {
		o.mu.Unlock()
		return false
	}
	for i := range q.parcels[:q.repeat] {
		q.parcels[i].out.Maybe = true // as a part of a message that is not known any more
	}
	q.repeat, q.part = 0, 0
	dropped := slices.DeleteFunc(slices.Clone(q.parcels), func(p parcel) bool { return !stale(p) })
	q.parcels = slices.DeleteFunc(q.parcels, stale)
	for _, p := range dropped {
		if p.out.Maybe || p.out.Part > 0 { // the row may not say so: the storage was away
			o.doubtful.add(rowID{p.out.Key, p.out.ID})
		}
		o.answer(p.out.Key)
	}
	o.callBack(q)
	o.mu.Unlock()
	for _, p := range dropped {
		if p.then != nil {
			p.then()
		}
	}
	return true
}

// maxJoined is how many waiting replies become one message.
const maxJoined = 10

// head is the next parcels to send as one, at most limit. ok is false where none is left, and then the queue is gone, or
// where the process ends: what stays in the queue then is what was not sent.
func (o *outbox) head(c conversation, q *queue, limit int) (batch []parcel, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(q.parcels) == 0 {
		delete(o.queues, c)
		return nil, false
	}
	if o.ctx.Err() != nil {
		return nil, false
	}
	n := max(1, q.repeat)
	if q.repeat == 0 && whole(q.parcels[0]) {
		for n < min(limit, len(q.parcels)) && whole(q.parcels[n]) {
			n++
		}
	}
	return slices.Clone(q.parcels[:n]), true
}

// maxQueued is how many replies of one conversation are held in memory before it is answered no further.
const maxQueued = 2 * maxJoined

// crowded reports whether a session's conversation has so many replies waiting that more of them would only wait behind
// those: its messages wait in the storage instead. It is called back when there is room.
func (o *outbox) crowded(key sessions.Key) bool {
	robot, id := key.Conversation()
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queues[conversation{robot, id}]
	if q == nil || len(q.parcels) < maxQueued {
		return false
	}
	if !slices.Contains(q.away, key) {
		q.away = append(q.away, key)
	}
	return true
}

// callBack wakes what was turned away, once there is room. The lock is held.
func (o *outbox) callBack(q *queue) {
	if len(q.parcels) >= maxQueued {
		return
	}
	for _, key := range q.away {
		o.answer(key)
	}
	q.away = nil
}

// whole reports whether nothing of a reply can have arrived, so that it may go out as a part of another message.
func whole(p parcel) bool { return p.out.Part == 0 && !p.out.Maybe }

// after notes what came of a try of the first n parcels.
func (o *outbox) after(q *queue, n int, v verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case v.done:
		for _, p := range q.parcels[:n] {
			o.settled.add(rowID{p.out.Key, p.out.ID})
		}
		q.repeat, q.part = 0, 0
		q.parcels = slices.Delete(q.parcels, 0, n)
		o.callBack(q)
		return
	case v.apart:
		q.repeat, q.part = 0, 0
	case v.repeat: // and a later try that surely failed does not change it
		q.repeat, q.part = n, v.part
	}
	for i := range q.parcels[:n] {
		p := &q.parcels[i]
		p.then = nil
		p.out.Attempts++
		p.out.Maybe = p.out.Maybe || v.maybe
		if n == 1 {
			p.out.Part = v.part
		}
	}
}

// pause waits for the next try; false: the outbox closes.
func (o *outbox) pause(q *queue, d time.Duration) bool {
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	if closed {
		return false
	}
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-q.wake:
		return false
	case <-o.ctx.Done():
		return false
	}
}
