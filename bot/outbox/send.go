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
	"ebb/sessions/guard"
	"ebb/sessions/retry"
)

const giveUpAfter = 24 * time.Hour

// A reminder that waits for calls is not given up before the next month has some. The next message to the conversation, or that month,
// brings it with a note that it is late. The newest keptReminders stay: a repeated one has newer times.
const (
	giveUpReminder = 32 * 24 * time.Hour
	keptReminders  = 10
	noteLateAfter  = 10 * time.Minute
	maxNoted       = 4000 // bytes of a text that a note leaves in one part
)

func noteLate(outs []sessions.Outgoing, now time.Time) {
	for i := range outs {
		r := &outs[i].Reply
		if r.Target.Late != "" && outs[i].Part == 0 && now.Sub(outs[i].Created) > noteLateAfter && len(r.Text) < maxNoted {
			r.Text += "\n\n" + r.Target.Late
		}
	}
}

// isTooOld reports whether a reply that failed now is given up for its age.
func (o *Outbox) isTooOld(q *queue, batch []*pending, out sessions.Outgoing, aside bool) bool {
	age := o.shared.Now().Sub(out.Created)
	if !aside || !out.Reply.Target.Scheduled || len(batch) > 1 {
		return age > giveUpAfter
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return age > giveUpReminder || age > giveUpAfter && q.remindersAfter(batch[0]) >= keptReminders
}

// After maxRefusals certain refusals without a known cause, in about four minutes, a reply is given up. Its text is
// the likeliest cause.
const maxRefusals = 10

type sendResult struct {
	done    bool      // sent or given up
	more    bool      // a part arrived, others follow
	split   bool      // the joined message was refused: each reply goes alone
	refused bool      // certainly, without a known cause: another reply may pass
	aside   bool      // only this message waits
	failed  bool      // without a pause by the transport: another reply may pass
	maybe   bool      // may have arrived, or has in part: the same message again
	part    int       // number that arrived
	via     string    // path of the arrived part
	retry   time.Time // next attempt, by the storage's clock
}

// expiryMargin is the time before its expiry from which a webhook is not used: clocks disagree.
const expiryMargin = time.Minute

// sendPart records the outcome, except of a part that is followed by others: the claim of the next part does.
func (o *Outbox) sendPart(ctx context.Context, q *queue, batch []*pending, outs []sessions.Outgoing) sendResult {
	o.useLent(q, batch, outs)
	noteLate(outs, o.shared.Now())
	out := join(outs, jointKey(batch))
	if len(batch) > 1 {
		out.Part = batch[0].part
	}
	if !webhookOf(out.Reply.Target).isUsable(o.shared.Now()) {
		out.Reply.Target.Webhook = "" // by the storage's clock, since replicas' clocks differ
	}
	sent, err := o.guarded(batch[0].log.WithContext(ctx), out)
	if err == nil && sent.More {
		return sendResult{more: true, part: sent.Part, via: sent.Via}
	}
	if err == nil {
		if sent.Via != chat.ViaCard { // a card shows its last frame once, however often it is sent
			o.countDoubles(batch, outs)
		}
		o.recordOutcome(batch, outs, sessions.Settled{Sent: true, Part: sent.Part, Via: sent.Via, Card: sent.Card, Carrier: sent.Carrier})
		o.noteScheduled(ctx, batch, outs, true)
		return sendResult{done: true}
	}
	failed, ok := errors.AsType[*chat.SendError](err)
	if !ok {
		failed = &chat.SendError{Err: err}
	}
	v := sendResult{refused: failed.Refused, failed: !failed.Refused && failed.After == 0, aside: failed.Aside, maybe: failed.Maybe || len(batch) > 1 && sent.Part > 0, part: sent.Part}
	tries := failures(batch) + 1
	if v.refused {
		tries = out.Refusals + 1
	}
	v.retry = o.shared.Now().Add(pauseAfter(tries-1, failed))
	v.done = failed.Permanent || v.refused && tries >= maxRefusals || o.isTooOld(q, batch, out, v.aside)
	if len(batch) > 1 && (v.done || v.refused) {
		v = sendResult{split: true, maybe: v.maybe, retry: o.shared.Now()}
	}
	s := sessions.Settled{Failed: v.done, Maybe: v.maybe, Refused: v.refused, Part: sent.Part, Via: sent.Via, Error: err.Error(), NextAt: v.retry}
	if v.aside {
		s.Via = chat.ViaOpenAPI // the next attempt's way
	}
	level := zerolog.WarnLevel
	if v.done {
		level, s.NextAt = zerolog.ErrorLevel, time.Time{}
	}
	batch[0].log.WithLevel(level).Err(err).Int64("reply", out.ID).Int("joined", len(batch)).Bool("given_up", v.done).
		Int("attempt", out.Attempts).Int("refusals", out.Refusals).Msg("Reply did not arrive")
	o.recordOutcome(batch, outs, s)
	if v.done && failed.Gone {
		o.noteScheduled(ctx, batch, outs, false)
	}
	return v
}

func (o *Outbox) noteScheduled(ctx context.Context, batch []*pending, outs []sessions.Outgoing, arrived bool) {
	for i, out := range outs {
		if out.Reply.Target.Scheduled && o.opts.Scheduled != nil {
			o.opts.Scheduled(batch[i].log.WithContext(ctx), out, arrived)
		}
	}
}

// guarded makes a panic an attempt that was refused without a known cause, and that may have arrived: others pass the reply, and it is
// given up after some.
func (o *Outbox) guarded(ctx context.Context, out sessions.Outgoing) (sent chat.Sent, err error) {
	err = guard.Do(ctx, guard.Reply, func() (err error) {
		sent, err = o.transport.Send(ctx, out)
		return err
	})
	if errors.Is(err, guard.ErrPanicked) {
		err = &chat.SendError{Refused: true, Maybe: true, Err: err}
	}
	return sent, err
}

// useLent puts the conversation's newest webhook in place of one without use, as of a reminder, which has none. A joined message has
// one: the newest, if it was lent to one of its replies, lest that reply counts as tried there.
func (o *Outbox) useLent(q *queue, batch []*pending, outs []sessions.Outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.shared.Now()
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

// countDoubles counts the sent replies that may have arrived before. DingTalk does not report whether it showed them
// twice or recognized their key.
func (o *Outbox) countDoubles(batch []*pending, outs []sessions.Outgoing) {
	for i, out := range outs {
		if out.Maybe {
			o.stats.ReplyDoubled()
			batch[i].log.Warn().Int64("reply", out.ID).Msg("Reply may have arrived before, sent it again")
		}
	}
}

func (o *Outbox) recordOutcome(batch []*pending, outs []sessions.Outgoing, s sessions.Settled) {
	o.stats.ReplyTried(s)
	if len(batch) > 1 {
		s.Part = 0 // parts of the joined message are not parts of its replies
	}
	maybe := s.Maybe
	for i, p := range batch {
		s.Key, s.ID, s.Attempt, s.Maybe = p.key, p.id, outs[i].Attempts, maybe || outs[i].Maybe
		p.owedMark = nil
		stored := o.storeMark(p.log.WithContext(o.ctx), s, s.Sent || s.Failed)
		if !stored && s.Maybe {
			owed := s
			p.owedMark = &owed
		}
		o.mu.Lock()
		p.unmarked = !stored
		o.mu.Unlock()
	}
}

// storeMark reports whether a mark was stored. With must it retries until the process ends: without it the next
// process would send the reply again.
func (o *Outbox) storeMark(ctx context.Context, s sessions.Settled, must bool) bool {
	err := retry.Do(ctx, retry.Storage, func() error {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), o.shared.CommitTimeout)
		defer stop()
		err := o.store.Settle(one, s)
		if err == nil || errors.Is(err, sessions.ErrNotFound) {
			return nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Bool("sent", s.Sent).Msg("Mark of a reply not stored")
		if !must {
			return retry.Permanent(err)
		}
		return err
	})
	return err == nil
}

// sendPauses are 1 s to 1 min, and up to a fifth more.
var sendPauses = retry.Pauses{First: 1100 * time.Millisecond, Max: 66 * time.Second, Jitter: 1.0 / 11}

func pauseAfter(attempts int, failed *chat.SendError) time.Duration {
	if failed.After > 0 {
		// The transport knows when there is room again; a longer wait would only delay people.
		return failed.After + time.Duration(rand.Float64()*0.05*float64(failed.After))
	}
	return sendPauses.After(attempts)
}

// join makes one message of replies: texts in order, each member mentioned once, to the newest target.
func join(outs []sessions.Outgoing, key string) sessions.Outgoing {
	out := outs[0]
	if len(outs) == 1 {
		return out
	}
	out.Reply.Nonce, out.Reply.Target.Mentions = key, nil
	var texts []string
	for _, o := range outs {
		out.Reply.Target.Scheduled = out.Reply.Target.Scheduled && o.Reply.Target.Scheduled
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
