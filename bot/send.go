package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// A reply that did not arrive within a day is given up: nobody waits for it any more.
const giveUpAfter = 24 * time.Hour

// verdict is what came of a try to send.
type verdict struct {
	done   bool      // settled for good
	apart  bool      // refused as one message: each reply is to be tried by itself
	repeat bool      // may have arrived, or has in part: the same message again
	maybe  bool      // may have arrived
	part   int       // parts that arrived
	retry  time.Time // when, by the storage's clock, where it is none of the first two
}

// expiryMargin is how long before its end a session webhook is not used any more, for clocks that disagree.
const expiryMargin = time.Minute

// try sends a batch as one message and records what came of it.
func (o *outbox) try(q *queue, batch []parcel) verdict {
	out := join(batch)
	if len(batch) > 1 {
		out.Part = q.part
	}
	log := batch[0].log.With().Int64("reply", out.ID).Int("joined", len(batch)).Logger()
	if end := out.Reply.Target.WebhookExpires; !end.IsZero() && o.now().Add(expiryMargin).After(end) {
		out.Reply.Target.Webhook = "" // by the storage's clock: no replica's own says when a way ends
	}
	sent, err := o.transport.Send(o.ctx, out)
	if err == nil {
		o.countDoubles(batch)
		o.mark(batch, sessions.Settled{Sent: true, Part: sent.Part, Via: sent.Via})
		return verdict{done: true}
	}
	final := IsPermanent(err) || o.now().Sub(out.Created) > giveUpAfter
	log.Warn().Err(err).Bool("given_up", final && len(batch) == 1).Int("attempt", out.Attempts+1).Msg("Reply did not arrive")
	if final && len(batch) > 1 {
		return verdict{apart: true}
	}
	s := sessions.Settled{Failed: final, Part: sent.Part, Via: sent.Via, Error: err.Error()}
	v := verdict{done: final, part: sent.Part, retry: o.now().Add(backoff(out.Attempts, err))}
	if e, ok := errors.AsType[*SendError](err); ok && e.Maybe {
		v.maybe, s.Maybe = true, true
	}
	v.repeat = v.maybe || sent.Part > 0
	if !final {
		s.NextAt = v.retry
	}
	o.mark(batch, s)
	return v
}

// countDoubles counts the replies that were sent now and may have arrived at an earlier try: whether DingTalk showed them
// twice, or knew them by their key, nobody tells us.
func (o *outbox) countDoubles(batch []parcel) {
	for _, p := range batch {
		if p.out.Maybe {
			o.metrics.maybeDoubled.Inc()
			o.tally.doubled.Add(1)
			p.log.Warn().Int64("reply", p.out.ID).Msg("Reply may have arrived before, sent it again")
		}
	}
}

// mark records the outcome of a message in the row of each reply that it held.
func (o *outbox) mark(batch []parcel, s sessions.Settled) {
	o.metrics.reply(s)
	if len(batch) > 1 {
		s.Part = 0 // parts of the joined message are not parts of its replies
	}
	for _, p := range batch {
		s.Key, s.ID = p.out.Key, p.out.ID
		o.record(p.log.WithContext(o.ctx), s)
	}
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
			o.unmarked.Store(true)
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

// join makes one message of replies that waited together: texts in order, everybody mentioned once, by the newest
// target. It has a key of its own, drawn from theirs: it is another message than any of them.
func join(batch []parcel) sessions.Outgoing {
	out := batch[0].out
	if len(batch) > 1 {
		keys := sha256.New()
		for _, p := range batch {
			keys.Write([]byte(p.out.Reply.Nonce))
		}
		out.Reply.Nonce = noncePrefix + hex.EncodeToString(keys.Sum(nil)[:12])
	}
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
