package reaction

import (
	"context"
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/breaker"
	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/retry"
)

// API makes the calls. Its errors are [*chat.SendError]. The caller reserves each call; the API returns those that
// DingTalk does not count.
type API interface {
	SetReaction(ctx context.Context, m Mark) error
	RemoveReaction(ctx context.Context, m Mark) error
}

// Mark is a reaction on a message.
type Mark struct {
	Robot        sessions.RobotCode
	Conversation sessions.ConversationID
	Message      sessions.MessageID
	Lang         string // language of its word
	Reserved     calls.Reservation
}

// Config is the parts of [Reactions]. All are required.
type Config struct {
	API      API
	Store    sessions.Cards
	Governor *calls.Governor
	Language func(sessions.ConversationID) string
}

// Reactions sets and removes marks. Its methods may be called from any goroutine.
type Reactions struct {
	cfg     Config
	breaker *breaker.Breaker

	seen *lru.Cache[sessions.MessageID, struct{}]
}

// A forgotten message costs a look at its row.
const remembered = 4096

// New returns reactions without a mark.
func New(cfg Config) *Reactions {
	seen, err := lru.New[sessions.MessageID, struct{}](remembered)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &Reactions{cfg: cfg, breaker: breaker.New(), seen: seen}
}

const (
	setTime = 4 * time.Second
	hold    = setTime + 2*time.Second // a mark is not removed while it may still be set
	maxWait = 500 * time.Millisecond  // a mark that waits longer for the rate comes too late

	// A missing permission lasts, as does a conversation that gets no marks, and each attempt would cost a call.
	pauseAfterFault = 10 * time.Minute
)

// DingTalk may not know a message yet that it has just sent, hence the pauses.
var setPauses = []time.Duration{0, 400 * time.Millisecond, 1200 * time.Millisecond}

// Acknowledge implements [chat.Acknowledger].
func (r *Reactions) Acknowledge(ctx context.Context, l sessions.Lease, e sessions.Event) {
	if e.Message == nil || e.Message.Scheduled != nil || e.MsgID == "" || r.cfg.Governor.Level() != calls.Streaming || r.cfg.Governor.Delay(calls.Reaction) > maxWait {
		return
	}
	if _, c := l.Key.Conversation(); r.breaker.Paused(c) {
		return
	}
	if seen, _ := r.seen.ContainsOrAdd(e.MsgID, struct{}{}); seen {
		return
	}
	go guard.Run(ctx, guard.Reaction, func() { r.set(ctx, l, e) })
}

// set reserves the call of the removal with that of the mark: a mark that can't be removed would stay. The row is stored before the
// call, so that another replica removes it after a crash.
func (r *Reactions) set(ctx context.Context, l sessions.Lease, e sessions.Event) {
	log := zerolog.Ctx(ctx)
	ctx, stop := context.WithTimeout(ctx, setTime)
	defer stop()
	reserved, err := r.cfg.Governor.Reserve(ctx, calls.Frame, calls.Reaction, calls.ReactionRecall)
	if err != nil {
		if !calls.IsRefused(err) && ctx.Err() == nil {
			log.Debug().Err(err).Msg("Calls of a reaction not reserved")
		}
		return
	}
	_, known, err := r.cfg.Store.OpenCard(ctx, l, sessions.Card{Kind: sessions.ReactionCard, Track: string(e.MsgID), EventID: e.ID}, hold)
	if err != nil || known {
		r.giveBack(ctx, reserved, calls.Reaction, calls.ReactionRecall)
		return
	}
	m := r.mark(l.Key, e.MsgID)
	m.Robot = e.Message.RobotCode
	for i, pause := range setPauses {
		if !retry.Sleep(ctx, pause) {
			break
		}
		if m.Reserved = reserved; i > 0 {
			if m.Reserved, err = r.cfg.Governor.Reserve(ctx, calls.Frame, calls.Reaction); err != nil {
				break
			}
		}
		err = guarded(ctx, func() error { return r.cfg.API.SetReaction(ctx, m) })
		if r.note(log.WithContext(ctx), m.Conversation, err, true); err == nil || isPermanent(err) || mayHaveArrived(err) {
			break
		}
	}
	if err == nil || mayHaveArrived(err) {
		r.settle(ctx, l.Key, e.MsgID, sessions.CardOpen) // from now on it is removed once the message is answered
		return
	}
	log.Debug().Err(err).Str("msg_id", string(e.MsgID)).Msg("Reaction not set")
	r.giveBack(ctx, reserved, calls.ReactionRecall)
	r.settle(ctx, l.Key, e.MsgID, sessions.CardFailed)
}

// guarded makes a panic a failure of its mark, whose call may have been made.
func guarded(ctx context.Context, call func() error) error {
	err := guard.Do(ctx, guard.Reaction, call)
	if errors.Is(err, guard.ErrPanicked) {
		err = &chat.SendError{Maybe: true, Err: err}
	}
	return err
}

// note learns from the outcome of a call. A failure of the application pauses all marks, others those of their conversation.
func (r *Reactions) note(ctx context.Context, of sessions.ConversationID, err error, sets bool) {
	failed, _ := errors.AsType[*chat.SendError](err)
	log := zerolog.Ctx(ctx).Warn().Err(err).Str("conversation", string(of))
	switch {
	case calls.IsRefused(err), err != nil && failed == nil:
	case failed != nil && failed.Silent:
		if d, all := r.breaker.Unanswered(of); d > 0 {
			log.Bool("all", all).Dur("pause_ms", d).Msg("DingTalk did not answer a call of a reaction: none is set for a while")
		}
	case failed != nil && failed.Maybe:
	default:
		r.breaker.Answered(of)
		switch {
		case failed != nil && failed.Account:
			r.breaker.CloseAll(pauseAfterFault)
			log.Dur("pause_ms", pauseAfterFault).Msg("DingTalk refused a reaction: none is set for a while")
		case isPermanent(err) && sets:
			r.breaker.Close(of, pauseAfterFault)
			log.Dur("pause_ms", pauseAfterFault).Msg("DingTalk refused a reaction of a conversation: none is set there for a while")
		}
	}
}

func (r *Reactions) mark(key sessions.Key, id sessions.MessageID) Mark {
	robot, conversation := key.Conversation()
	return Mark{Robot: robot, Conversation: conversation, Message: id, Lang: r.cfg.Language(conversation)}
}

// Without the stored state the mark is removed once more, or later.
func (r *Reactions) settle(ctx context.Context, key sessions.Key, id sessions.MessageID, state sessions.CardState) {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), setTime)
	defer stop()
	if err := r.cfg.Store.SettleCard(one, key, string(id), state); err != nil {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("State of a reaction not stored")
	}
}

func (r *Reactions) giveBack(ctx context.Context, reserved calls.Reservation, apis ...calls.API) {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), setTime)
	defer stop()
	for _, api := range apis {
		if err := reserved.Return(one, api); err != nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Call of a reaction not returned to the month")
		}
	}
}

func isPermanent(err error) bool {
	failed, ok := errors.AsType[*chat.SendError](err)
	return calls.IsRefused(err) || ok && (failed.Permanent || failed.Refused)
}

func mayHaveArrived(err error) bool {
	failed, ok := errors.AsType[*chat.SendError](err)
	return ok && failed.Maybe
}
