package bot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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
	transport Transport
	metrics   *metrics
	settle    time.Duration // how long one settling may take

	mu      sync.Mutex
	queues  map[conversation]*queue
	resumed map[sessions.Key]int64 // terms under which a session's unsent rows were taken up
	settled settledRows
	closed  bool
	wg      sync.WaitGroup
}

// settledRows are the replies that this process settled for good, the latest of them: a list of unsent rows that was
// read before a mark and is taken up after it must not send the reply again.
type settledRows struct {
	ring [1024]rowID
	next int
	set  map[rowID]bool
}

type rowID struct {
	key sessions.Key
	id  int64
}

func (s *settledRows) add(r rowID) {
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
	wake    chan struct{} // a parcel came, or the outbox closes
}

// parcel is one reply on its way, and what to do once it was tried for the first time.
type parcel struct {
	out  sessions.Outgoing
	then func()
}

// send queues replies; then runs after the last of them was tried, or at once where there is none. It never blocks.
func (o *outbox) send(ctx context.Context, l sessions.Lease, outs []sessions.Outgoing, then func()) {
	for i, out := range outs {
		p := parcel{out: out}
		if i == len(outs)-1 {
			p.then = then
		}
		o.push(p)
	}
	if len(outs) == 0 {
		then()
	}
}

// resume takes up what an earlier owner of the session left unsent, once for every term.
func (o *outbox) resume(ctx context.Context, l sessions.Lease) error {
	o.mu.Lock()
	done := o.resumed[l.Key] == l.Term
	o.mu.Unlock()
	if done {
		return nil
	}
	outs, err := o.store.Unsent(ctx, l)
	if err != nil {
		return fmt.Errorf("read unsent replies of session %s: %w", l.Key, err)
	}
	for _, out := range outs {
		if out.Resumed {
			o.metrics.maybeDoubled.Inc()
			zerolog.Ctx(ctx).Warn().Int64("reply", out.ID).Msg("Reply may have been sent before a crash, sending it under the same key")
		}
		o.push(parcel{out: out})
	}
	o.mu.Lock()
	o.resumed[l.Key] = l.Term
	o.mu.Unlock()
	return nil
}

// doubt has the session's unsent rows read again: a commit may have left one that this side does not know.
func (o *outbox) doubt(key sessions.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.resumed, key)
}

func (o *outbox) push(p parcel) {
	t := p.out.Reply.Target
	c := conversation{t.RobotCode, t.ConversationID}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settled.set[rowID{p.out.Key, p.out.ID}] {
		return
	}
	q := o.queues[c]
	if q == nil {
		if o.closed {
			return // the row waits for the next process
		}
		q = &queue{wake: make(chan struct{}, 1)}
		o.queues[c] = q
		o.wg.Add(1)
		go o.run(c, q)
	}
	known := func(x parcel) bool { return x.out.ID == p.out.ID && x.out.Key == p.out.Key }
	if !slices.ContainsFunc(q.parcels, known) {
		q.parcels = append(q.parcels, p)
	}
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
	joined := 1
	for {
		batch, ok := o.head(c, q, joined)
		if !ok {
			return
		}
		if early := time.Until(batch[0].out.NextAt); early > 0 { // as an earlier process was told
			if !o.pause(q, early) {
				return
			}
			joined = maxJoined
			continue
		}
		retry := o.try(batch)
		for i := range batch {
			if f := batch[i].then; f != nil {
				f()
			}
		}
		if retry.IsZero() {
			o.drop(q, len(batch))
			joined = 1
			continue
		}
		o.forgetThen(q, len(batch))
		if !o.pause(q, time.Until(retry)) {
			return
		}
		// What piled up meanwhile goes out as one message: the conversation's rate is the bottleneck.
		joined = maxJoined
	}
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
	n := 1
	for n < min(limit, len(q.parcels)) && q.parcels[0].out.Part == 0 && q.parcels[n].out.Part == 0 {
		n++
	}
	return slices.Clone(q.parcels[:n]), true
}

func (o *outbox) drop(q *queue, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range q.parcels[:n] {
		o.settled.add(rowID{p.out.Key, p.out.ID})
	}
	q.parcels = slices.Delete(q.parcels, 0, n)
}

// forgetThen notes that the first n parcels were tried.
func (o *outbox) forgetThen(q *queue, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range q.parcels[:n] {
		q.parcels[i].then = nil
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

// A reply that did not arrive within a day is given up: nobody waits for it any more.
const giveUpAfter = 24 * time.Hour

// try sends a batch as one message and records what came of it. It returns when to try again, zero for never.
func (o *outbox) try(batch []parcel) time.Time {
	out := join(batch)
	log := zerolog.Ctx(o.ctx).With().EmbedObject(out.Key).Int64("reply", out.ID).Logger()
	sent, err := o.transport.Send(o.ctx, out)
	s := sessions.Settled{Sent: err == nil, Part: sent.Part, Via: sent.Via}
	var retry time.Time
	if err != nil {
		s.Error = err.Error()
		s.Failed = IsPermanent(err) || time.Since(out.Created) > giveUpAfter
		if !s.Failed {
			retry = time.Now().Add(backoff(out.Attempts, err))
			s.NextAt = retry
		}
		log.Warn().Err(err).Bool("given_up", s.Failed).Int("attempt", out.Attempts+1).Msg("Reply did not arrive")
	}
	o.metrics.reply(s)
	o.mu.Lock()
	q := o.queues[conversation{out.Reply.Target.RobotCode, out.Reply.Target.ConversationID}]
	for i := range batch {
		q.parcels[i].out.Attempts++
		if i == 0 {
			q.parcels[i].out.Part = sent.Part
		}
	}
	o.mu.Unlock()
	for i, p := range batch {
		if s.Key, s.ID = p.out.Key, p.out.ID; i > 0 {
			s.Part = 0 // parts of the joined message are not parts of this reply
		}
		o.record(log.WithContext(o.ctx), s)
	}
	return retry
}

// record marks a reply in the storage. A mark of what was sent is tried until it is stored or the process ends:
// without it the next process would send the reply again.
func (o *outbox) record(ctx context.Context, s sessions.Settled) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), o.settle)
		err := o.store.Settle(one, s)
		stop()
		if err == nil || errors.Is(err, sessions.ErrNotFound) {
			return
		}
		zerolog.Ctx(ctx).Warn().Err(err).Bool("sent", s.Sent).Msg("Mark of a reply not stored")
		if !s.Sent && !s.Failed {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// backoff is how long to wait after a failed try: doubling from one second to a minute, never less than the transport asks.
func backoff(attempts int, err error) time.Duration {
	d := min(time.Second<<min(attempts, 6), time.Minute)
	d += time.Duration(rand.Float64() * 0.2 * float64(d))
	if s, ok := errors.AsType[*SendError](err); ok && s.After > 0 {
		// The transport knows when there is room again; waiting longer would only delay people.
		return s.After + time.Duration(rand.Float64()*0.05*float64(s.After))
	}
	return d
}

// join makes one message of replies that waited together: texts in order, everybody mentioned once, by the newest target.
func join(batch []parcel) sessions.Outgoing {
	out := batch[0].out
	seen := map[sessions.Mention]bool{}
	var mentions []sessions.Mention
	for i, p := range batch {
		if i > 0 {
			out.Reply.Text += "\n\n---\n\n" + p.out.Reply.Text
			if t := p.out.Reply.Target; !t.WebhookExpires.Before(out.Reply.Target.WebhookExpires) {
				out.Reply.Target = t
			}
		}
		for _, m := range p.out.Reply.Target.Mentions {
			if !seen[m] {
				seen[m] = true
				mentions = append(mentions, m)
			}
		}
	}
	out.Reply.Target.Mentions = mentions
	return out
}
