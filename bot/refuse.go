package bot

import (
	"context"
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/bot/access"
	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/retry"
)

const (
	// refusalEvery holds for one group or person, over all replicas.
	refusalEvery = time.Hour
	// refusalRest is the time until a replica asks the storage again whether a refusal is due.
	refusalRest = time.Minute
	refusalTime = 30 * time.Second
	// maxRefusing bounds the refusals in delivery, and maxRefused those that are remembered.
	maxRefusing = 8
	maxRefused  = 10_000
)

// refuser answers messages that access rules refuse. Their words are neither stored nor shown to a model. A message
// beyond the bounds gets no answer.
type refuser struct {
	ctx       context.Context // ends with the replies at a stop
	shared    *parts.Shared
	limits    sessions.Limiter
	transport chat.Transport
	counted   *prometheus.CounterVec // by reason

	recent *lru.Cache[refused, time.Time]
	slots  chan struct{}
	work   sync.WaitGroup
}

type refused struct {
	robot sessions.RobotCode
	why   access.Refusal
	id    string
}

func newRefuser(ctx context.Context, s *parts.Shared, limits sessions.Limiter, t chat.Transport, counted *prometheus.CounterVec) *refuser {
	recent, _ := lru.New[refused, time.Time](maxRefused) // it fails only without a size
	return &refuser{ctx: ctx, shared: s, limits: limits, transport: t, counted: counted, recent: recent, slots: make(chan struct{}, maxRefusing)}
}

// refuse answers in the background, once an hour for each group or sender, and [sessions.NoticesPerMinute] times a minute in a group.
func (r *refuser) refuse(ctx context.Context, m sessions.Message, why access.Refusal) {
	r.counted.WithLabelValues(string(why)).Inc()
	zerolog.Ctx(ctx).Debug().Str("msg_id", string(m.ID)).Str("reason", string(why)).Msg("Message refused")
	who := refused{m.RobotCode, why, string(m.SenderID)}
	if why == access.Group {
		who.id = string(m.ConversationID)
	}
	if at, ok := r.recent.Get(who); ok && time.Since(at) < refusalRest {
		return
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return
	}
	r.recent.Add(who, time.Now())
	log := *zerolog.Ctx(ctx)
	r.work.Go(func() {
		defer func() { <-r.slots }()
		work, stop := context.WithTimeout(log.WithContext(r.ctx), refusalTime)
		defer stop()
		if err := guard.Do(work, guard.Refusal, func() error { return r.send(work, m, who) }); err != nil {
			log.Warn().Err(err).Str("reason", string(why)).Msg("Refusal not delivered")
		}
	})
}

// A refusal that is lost with the process is due again in an hour.
func (r *refuser) send(ctx context.Context, m sessions.Message, who refused) error {
	n := sessions.Notice{Kind: "refused/" + string(who.why), Robot: who.robot, Subject: who.id, Lasts: refusalEvery}
	if m.ConversationType != sessions.Private {
		n.Group = m.ConversationID
	}
	due, err := r.limits.Notify(ctx, n)
	if err != nil || !due {
		return err
	}
	phrase := map[access.Refusal]wording.Phrase{
		access.Group: wording.RefusedGroup, access.Person: wording.RefusedPerson, access.External: wording.RefusedExternal,
	}[who.why]
	asked := sessions.Event{SenderID: m.SenderID, Message: &m}
	key := sessions.ScopeGroup.Key(m)
	o := sessions.Outgoing{Key: key, Attempts: 1, Reply: sessions.Reply{
		Target: chat.TargetOf([]sessions.Event{asked}), Nonce: chat.ReplyKey(key, asked) + "-" + string(m.ID),
		Text: wording.Say(phrase, r.shared.Languages.OfText(m.ConversationID, m.Text), who.id),
	}}
	return retry.Do(ctx, retry.Pauses{First: time.Second, Max: 10 * time.Second}, func() error {
		_, err := r.transport.Send(ctx, o)
		if failed, ok := errors.AsType[*chat.SendError](err); ok && (failed.Permanent || failed.Maybe || failed.Refused) {
			return retry.Permanent(err)
		}
		return err
	})
}

func (r *refuser) Wait(ctx context.Context) error { return awaitWork(ctx, &r.work) }

// awaitWork returns at the end of work, or with ctx's cause.
func awaitWork(ctx context.Context, work *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
