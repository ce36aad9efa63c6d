package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
)

// A reply that did not arrive within a day is given up: nobody waits for it any more.
const giveUpAfter = 24 * time.Hour

// A reply that DingTalk refuses so often, each time surely and under a code that names no cause, is given up: after about
// four minutes. What it says is the likeliest cause.
const MaxRefusals = 10

// verdict is the outcome of a try to send.
type verdict struct {
	done    bool      // settled for good
	more    bool      // a part arrived, others are left
	apart   bool      // refused as one message: each reply is to be tried by itself
	refused bool      // surely, under a code that names no cause: another reply may pass
	failed  bool      // without a reason to pause the conversation: another reply may pass
	maybe   bool      // may have arrived, or has in part: the same message again
	part    int       // parts that arrived
	via     string    // of the part that arrived
	retry   time.Time // when, by the storage's clock, where it is not settled
}

// expiryMargin is how long before its end a session webhook is not used any more, for clocks that disagree.
const expiryMargin = time.Minute

// try sends the next part of claimed replies, as one message, and records the outcome. A part that is followed by others is
// recorded by the claim of the next one.
func (o *Outbox) try(batch []*parcel, outs []sessions.Outgoing) verdict {
	out := join(outs, jointKey(batch))
	if len(batch) > 1 {
		out.Part = batch[0].part
	}
	if end := out.Reply.Target.WebhookExpires; !end.IsZero() && o.now().Add(expiryMargin).After(end) {
		out.Reply.Target.Webhook = "" // by the storage's clock: no replica's own says when a way ends
	}
	sent, err := o.transport.Send(o.ctx, out)
	if err == nil && sent.More {
		return verdict{more: true, part: sent.Part, via: sent.Via}
	}
	if err == nil {
		o.countDoubles(batch, outs)
		o.mark(batch, outs, sessions.Settled{Sent: true, Part: sent.Part, Via: sent.Via})
		return verdict{done: true}
	}
	failed, ok := errors.AsType[*chat.SendError](err)
	if !ok {
		failed = &chat.SendError{Err: err}
	}
	v := verdict{refused: failed.Refused, failed: !failed.Refused && failed.After == 0, maybe: failed.Maybe || len(batch) > 1 && sent.Part > 0, part: sent.Part}
	tries := failures(batch) + 1
	if v.refused {
		tries = out.Refusals + 1
	}
	v.retry = o.now().Add(backoff(tries-1, failed))
	v.done = failed.Permanent || v.refused && tries >= MaxRefusals || o.now().Sub(out.Created) > giveUpAfter
	if len(batch) > 1 && (v.done || v.refused) {
		v = verdict{apart: true, maybe: v.maybe, retry: o.now()}
	}
	s := sessions.Settled{Failed: v.done, Maybe: v.maybe, Refused: v.refused, Part: sent.Part, Via: sent.Via, Error: err.Error(), NextAt: v.retry}
	level := zerolog.WarnLevel
	if v.done {
		level, s.NextAt = zerolog.ErrorLevel, time.Time{}
	}
	batch[0].log.WithLevel(level).Err(err).Int64("reply", out.ID).Int("joined", len(batch)).Bool("given_up", v.done).
		Int("attempt", out.Attempts).Int("refusals", out.Refusals).Msg("Reply did not arrive")
	o.mark(batch, outs, s)
	return v
}

// countDoubles counts the replies that were sent now and may have arrived at an earlier try: whether DingTalk showed them
// twice, or knew them by their key, nobody tells us.
func (o *Outbox) countDoubles(batch []*parcel, outs []sessions.Outgoing) {
	for i, out := range outs {
		if out.Maybe {
			o.stats.ReplyDoubled()
			batch[i].log.Warn().Int64("reply", out.ID).Msg("Reply may have arrived before, sent it again")
		}
	}
}

// mark records the outcome of a message in the row of each reply that it held.
func (o *Outbox) mark(batch []*parcel, outs []sessions.Outgoing, s sessions.Settled) {
	o.stats.ReplyTried(s)
	if len(batch) > 1 {
		s.Part = 0 // parts of the joined message are not parts of its replies
	}
	maybe := s.Maybe
	for i, p := range batch {
		s.Key, s.ID, s.Attempt, s.Maybe = p.key, p.id, outs[i].Attempts, maybe || outs[i].Maybe
		p.owed = nil
		stored := o.record(p.log.WithContext(o.ctx), s, s.Sent || s.Failed)
		if !stored && s.Maybe {
			owed := s
			p.owed = &owed
		}
		o.Mu.Lock()
		p.unmarked = !stored
		o.Mu.Unlock()
	}
}

// record marks a reply in the storage and reports whether the storage knows. A mark that must be stored is tried until it
// is or the process ends: without it the next process would send the reply again.
func (o *Outbox) record(ctx context.Context, s sessions.Settled, must bool) bool {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), o.settle)
		err := o.store.Settle(one, s)
		stop()
		if err == nil || errors.Is(err, sessions.ErrNotFound) {
			return true
		}
		zerolog.Ctx(ctx).Warn().Err(err).Bool("sent", s.Sent).Msg("Mark of a reply not stored")
		if !must {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// backoff is how long to wait after a failed try: doubling from one second to a minute, never less than the transport asks.
func backoff(attempts int, failed *chat.SendError) time.Duration {
	d := min(time.Second<<min(max(attempts, 0), 6), time.Minute)
	d += time.Duration(rand.Float64() * 0.2 * float64(d))
	if failed.After > 0 {
		// The transport knows when there is room again; waiting longer would only delay people.
		return failed.After + time.Duration(rand.Float64()*0.05*float64(failed.After))
	}
	return d
}

// join makes one message of replies that waited together: texts in order, everybody mentioned once, by the newest target.
// key is its own; empty for a reply alone.
func join(outs []sessions.Outgoing, key string) sessions.Outgoing {
	out := outs[0]
	if len(outs) == 1 {
		return out
	}
	out.Reply.Nonce, out.Reply.Target.Mentions = key, nil
	var texts []string
	for _, o := range outs {
		texts, out.Joined = append(texts, o.Reply.Text), append(out.Joined, o.Reply)
		if t := o.Reply.Target; !t.WebhookExpires.Before(out.Reply.Target.WebhookExpires) {
			out.Reply.Target.Webhook, out.Reply.Target.WebhookExpires = t.Webhook, t.WebhookExpires
		}
		for _, m := range o.Reply.Target.Mentions {
			if !slices.Contains(out.Reply.Target.Mentions, m) {
				out.Reply.Target.Mentions = append(out.Reply.Target.Mentions, m)
			}
		}
	}
	out.Reply.Text = strings.Join(texts, "\n\n---\n\n")
	return out
}
