package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/retry"
)

// Store has the replies that are not settled. See [sessions.Outbox].
type Store interface {
	Unsent(ctx context.Context, l sessions.Lease) ([]sessions.Outgoing, error)
	Claim(ctx context.Context, l sessions.Lease, t sessions.SendAttempt) ([]sessions.Outgoing, error)
	Settle(ctx context.Context, s sessions.SendOutcome) error
}

// Stats counts attempts to send.
type Stats interface {
	ReplyResumed() // left by an earlier process
	ReplyDoubled() // sent again, and may have arrived before
	ReplyTried(s sessions.SendOutcome)
}

// sender makes attempts to send messages, and stores their outcomes.
type sender struct {
	ctx       context.Context // ends with the process
	shared    *parts.Shared
	store     Store
	transport chat.Transport
	stats     Stats
	scheduled func(ctx context.Context, o sessions.Outgoing, arrived bool)
	files     uploads
	queues    *queues
}

const giveUpAfter = 24 * time.Hour

// A reminder that waits for calls is not given up before the next month has some. The next message to the conversation, or that month,
// brings it with a note that it is late. The newest keptReminders stay: a repeated one has newer times.
const (
	giveUpReminder = 32 * 24 * time.Hour
	keptReminders  = 10
)

// isTooOld reports whether a reply that failed now is given up for its age.
func (s *sender) isTooOld(q *queue, batch []*pending, out sessions.Outgoing, aside bool) bool {
	age := s.shared.Now().Sub(out.Created)
	if !aside || !out.Reply.Target.Scheduled || len(batch) > 1 {
		return age > giveUpAfter
	}
	return age > giveUpReminder || age > giveUpAfter && s.queues.remindersAfter(q, batch[0]) >= keptReminders
}

// After maxRefusals certain refusals without a known cause, in about four minutes, a reply is given up. Its text is
// the likeliest cause.
const maxRefusals = 10

// sendPart stores the outcome, except of a part that is followed by others: the claim of the next part does.
func (s *sender) sendPart(ctx context.Context, q *queue, batch []*pending, outs []sessions.Outgoing) attempt {
	s.queues.useLent(q, batch, outs)
	noteLate(outs, s.shared.Now())
	batch[0].way.placeIn(&outs[0])
	out := join(outs, jointKey(batch))
	if len(batch) > 1 {
		out.Part = batch[0].part
	}
	if !webhookOf(out.Reply.Target).isUsable(s.shared.Now()) {
		out.Reply.Target.Webhook = "" // by the storage's clock, since replicas' clocks differ
	}
	var sent chat.Sent
	err := error(&chat.SendError{Permanent: true, Err: errFileGone})
	if batch[0].way.fault != fileGone || out.Reply.Target.File == nil {
		sent, err = s.guarded(batch[0].log.WithContext(ctx), out)
	}
	a := attempt{outcome: sessions.SendOutcome{Part: sent.Part, Via: sent.Via, Carrier: sent.Carrier}}
	if err == nil && sent.More {
		a.more = true
		return a
	}
	if err == nil {
		if sent.Via != chat.ViaCard && batch[0].file == nil { // a card shows its last frame once, however often it is sent
			s.countDoubles(batch, outs)
		}
		a.outcome.Sent, a.outcome.Card = true, sent.Card
		s.recordOutcome(batch, outs, a.outcome)
		s.files.delete(s.ctx, batch[0])
		s.noteScheduled(ctx, batch, outs, true)
		return a
	}
	failed, ok := errors.AsType[*chat.SendError](err)
	if !ok {
		failed = &chat.SendError{Err: err}
	}
	a = s.judge(q, batch, out, a, failed)
	a.outcome.Error = err.Error()
	level := zerolog.WarnLevel
	if a.done() {
		level = zerolog.ErrorLevel
	}
	batch[0].log.WithLevel(level).Err(err).Int64("reply", out.ID).Int("joined", len(batch)).Bool("given_up", a.done()).
		Int("attempt", out.Attempts).Int("refusals", out.Refusals).Msg("Reply did not arrive")
	s.recordOutcome(batch, outs, a.outcome)
	if a.done() {
		s.files.delete(s.ctx, batch[0])
		s.sayRefused(batch[0].log, out, failed)
	}
	if a.done() && failed.Gone {
		s.noteScheduled(ctx, batch, outs, false)
	}
	return a
}

// sayRefused sends a sentence in place of an answer that was given up for its words: its asker would wait without an end. It is tried at most
// once, by the webhook alone, which takes no counted call. The reply stays given up, and a card that was left is closed as others are.
func (s *sender) sayRefused(log *zerolog.Logger, out sessions.Outgoing, failed *chat.SendError) {
	target := &out.Reply.Target
	isRefused := failed.Content || failed.Refused && !errors.Is(failed, guard.ErrPanicked)
	if !isRefused || target.Webhook == "" || target.Scheduled || target.File != nil || !s.shared.Leases.Trusted() {
		return
	}
	ctx, stop := context.WithTimeout(log.WithContext(s.ctx), sessions.SendTime) // to store the outcome may have taken the time of the attempt
	defer stop()
	target.Card = "" // it shows the parts that arrived, or was left before
	out.Reply.Text, out.Part = wording.Say(wording.ReplyRefused, s.shared.Languages.OfText(target.ConversationID, out.Reply.Text)), 0
	out.Reply.Nonce += "-refused"
	if _, err := s.guarded(ctx, out); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Int64("reply", out.ID).Msg("Failed to report a refused reply to its asker")
	}
}

// judge completes an attempt that failed: it is given up, or made again.
func (s *sender) judge(q *queue, batch []*pending, out sessions.Outgoing, a attempt, failed *chat.SendError) attempt {
	if p := batch[0]; p.isFile() && !failed.Gone && !s.isTooOld(q, batch, out, false) {
		return judgeFile(p, a, failed, s.shared.Now())
	}
	tries := failures(batch) + 1
	if failed.Refused {
		tries = out.Refusals + 1
	}
	a.outcome.Maybe = failed.Maybe || len(batch) > 1 && a.outcome.Part > 0
	done := failed.Permanent || failed.Refused && tries >= maxRefusals || s.isTooOld(q, batch, out, failed.Aside)
	switch {
	case len(batch) > 1 && (done || failed.Refused):
		a.split, a.outcome.NextAt = true, s.shared.Now()
		return a
	case !done:
		a.outcome.NextAt = s.shared.Now().Add(pauseAfter(tries-1, failed))
	}
	a.outcome.Failed, a.outcome.Refused = done, failed.Refused
	a.aside, a.failed = failed.Aside, !failed.Refused && failed.After == 0
	if a.aside {
		a.outcome.Via = chat.ViaOpenAPI // the next attempt's way
	}
	return a
}

func (s *sender) noteScheduled(ctx context.Context, batch []*pending, outs []sessions.Outgoing, arrived bool) {
	for i, out := range outs {
		if out.Reply.Target.Scheduled {
			s.scheduled(batch[i].log.WithContext(ctx), out, arrived)
		}
	}
}

// guarded makes a panic an attempt that was refused without a known cause, and that may have arrived: others pass the reply, and it is
// given up after some.
func (s *sender) guarded(ctx context.Context, out sessions.Outgoing) (sent chat.Sent, err error) {
	err = guard.Do(ctx, guard.Reply, func() (err error) {
		sent, err = s.transport.Send(ctx, out)
		return err
	})
	if errors.Is(err, guard.ErrPanicked) {
		err = &chat.SendError{Refused: true, Maybe: true, Err: err}
	}
	return sent, err
}

// countDoubles counts the sent replies that may have arrived before. DingTalk does not report whether it showed them
// twice or recognized their key.
func (s *sender) countDoubles(batch []*pending, outs []sessions.Outgoing) {
	for i, out := range outs {
		if out.Maybe {
			s.stats.ReplyDoubled()
			batch[i].log.Warn().Int64("reply", out.ID).Msg("Reply may have arrived before, sent it again")
		}
	}
}

// recordOutcome stores the outcome of an attempt for each reply.
func (s *sender) recordOutcome(batch []*pending, outs []sessions.Outgoing, outcome sessions.SendOutcome) {
	s.stats.ReplyTried(outcome)
	if len(batch) > 1 {
		outcome.Part = 0 // parts of the joined message are not parts of its replies
	}
	maybe := outcome.Maybe
	for i, p := range batch {
		outcome.Key, outcome.ID, outcome.Attempt, outcome.Maybe = p.key, p.id, outs[i].Attempts, maybe || outs[i].Maybe
		p.owedMark = nil
		stored := s.storeMark(p.log.WithContext(s.ctx), outcome, outcome.Sent || outcome.Failed)
		if !stored && outcome.Maybe {
			owed := outcome
			p.owedMark = &owed
		}
		s.queues.noteMark(p, stored)
	}
}

// storeMark reports whether a mark was stored. With must it retries until the process ends: without it the next
// process would send the reply again.
func (s *sender) storeMark(ctx context.Context, mark sessions.SendOutcome, must bool) bool {
	err := retry.Do(ctx, retry.Storage, func() error {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), s.shared.CommitTimeout)
		defer stop()
		err := s.store.Settle(one, mark)
		if err == nil || errors.Is(err, sessions.ErrNotFound) {
			return nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Bool("sent", mark.Sent).Msg("Mark of a reply not stored")
		if !must {
			return retry.Permanent(err)
		}
		return err
	})
	return err == nil
}
