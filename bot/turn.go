package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
)

// turn is one way from waiting messages to a committed answer.
type turn struct {
	key   sessions.Key
	lease sessions.Lease
	view  sessions.View
	asked []sessions.Event // the pending messages that this turn takes
	plan  plan
	cut   bool // the request is of a part of the view
	lang  string
	delta func(text string, reset bool)
}

// turn answers the session's waiting messages, or some of them: steps 3 to 8 of the way of a message. The storage is
// asked before and after the model, never held meanwhile. It reports whether messages still wait.
func (b *Bot) turn(ctx context.Context, key sessions.Key) (more bool, err error) {
	if !b.leases.Trusted() {
		return false, errHeartbeat
	}
	lease, err := b.leases.Get(ctx, key)
	if err != nil {
		return false, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	defer func() { err = b.leases.Check(key, err) }()
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx = log.WithContext(ctx)

	if err := b.outbox.resume(ctx, lease); err != nil {
		return false, err
	}
	view, err := b.store.Begin(ctx, lease, b.cfg.mergeLimit())
	if err != nil {
		return false, fmt.Errorf("begin turn of session %s: %w", key, err)
	}
	t := b.open(lease, view)
	if len(t.asked) == 0 {
		return false, nil
	}
	began := time.Now()
	a, err := b.answer(ctx, t)
	if err != nil {
		return false, b.giveBack(ctx, t, err)
	}
	done, err := b.commit(ctx, t, a)
	if err != nil {
		b.outbox.doubt(key) // an answer that was lost may have left a reply behind
		return false, fmt.Errorf("commit turn of session %s: %w", key, err)
	}
	b.metrics.turn(t.plan.kind, time.Since(began), t.asked)
	log.Info().Str("kind", t.plan.kind).Str("msg_id", string(t.asked[0].MsgID)).Int("messages", len(t.asked)).Int("tokens", a.total).
		Dur("took", time.Since(began)).Msg("Turn committed")
	b.outbox.send(ctx, lease, done.Replies, func() { b.upkeep.Wake(key) })
	// A message that had broken a turn was taken alone, whatever waits behind it.
	return len(t.asked) < len(view.Pending) || len(view.Pending) == b.cfg.mergeLimit() || view.Pending[0].Attempts > 1, nil
}

// errHeartbeat says that this replica can't be sure of its leases, and waits until it is.
var errHeartbeat = errors.New("heartbeat is overdue: leases can't be trusted")

// open decides what the turn takes and how, and prepares the events for a request.
func (b *Bot) open(lease sessions.Lease, view sessions.View) *turn {
	for i := range view.Pending {
		view.Pending[i].Tokens = b.counter.Count(view.Pending[i].Content)
	}
	t := &turn{key: lease.Key, lease: lease, view: view}
	b.frame.shrink(t.view.Tail)
	t.plan = b.triage(view.Pending, time.Now())
	t.asked = append([]sessions.Event(nil), view.Pending[:t.plan.take]...)
	if len(t.asked) > 0 {
		last := t.asked[len(t.asked)-1]
		t.lang = languageOf(b.ownWords(last), b.cfg.Language)
		if b.cfg.Watch != nil {
			t.delta = b.cfg.Watch(t.key)
		}
	}
	return t
}

// outcome is what a turn came to, ready to be committed.
type outcome struct {
	answer
	dead  bool
	mute  bool // people were told already
	total int  // tokens of the context as it would be sent next
	cal   float64
}

// answer gives the turn's outcome: from the model, from a command, or a fixed word. Its error means that the
// messages must be tried again; what a model could not do is an answer too.
func (b *Bot) answer(ctx context.Context, t *turn) (outcome, error) {
	work, stop := context.WithTimeout(ctx, b.cfg.TurnTimeout)
	defer stop()
	var o outcome
	switch t.plan.kind {
	case kindCommand:
		o.text = b.command(work, t)
	case kindAsk:
		a, err := b.ask(work, t)
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		if err != nil && !isModelTrouble(err) {
			return o, err
		}
		if o.answer = a; err != nil {
			zerolog.Ctx(ctx).Error().Err(err).Str("class", string(ClassOf(err))).Msg("Model gave no answer")
			b.metrics.modelErrors.WithLabelValues(string(ClassOf(err))).Inc()
			o.text = apology(err, t.lang)
			o.events = append(dropOpenCalls(o.events), sessions.Event{Role: sessions.RoleAssistant, Content: o.text})
		}
	default:
		o.text, o.dead = t.plan.word(t.asked, t.lang, b.cfg.Location), t.plan.kind == kindDead
	}
	if t.plan.kind == kindStale {
		// One word tells of a whole backlog, however many turns take it.
		told, _ := b.toldStale.Load(t.key)
		at, ok := told.(time.Time)
		if o.mute = ok && at.After(t.asked[len(t.asked)-1].CreatedAt); !o.mute {
			b.toldStale.Store(t.key, time.Now())
		}
	}
	if len(o.events) == 0 && !o.mute {
		o.events = []sessions.Event{{Role: sessions.RoleAssistant, Content: o.text}}
	}
	b.account(t, &o)
	return o, nil
}

// isModelTrouble tells a model's failure, which people are told of, from the storage's, after which the turn is run again.
func isModelTrouble(err error) bool {
	_, ok := errors.AsType[*ModelError](err)
	return ok || errors.Is(err, context.DeadlineExceeded)
}

// dropOpenCalls takes calls from the end that have no result yet.
func dropOpenCalls(events []sessions.Event) []sessions.Event {
	for i := len(events) - 1; i >= 0 && events[i].Role != sessions.RoleTool; i-- {
		if len(events[i].ToolCalls) > 0 {
			return events[:i]
		}
	}
	return events
}

// ask makes the request fit into the window and has the model answer it. A provider that finds it too large all the
// same gets one more, from the emergency view.
func (b *Bot) ask(ctx context.Context, t *turn) (answer, error) {
	a, err := b.loop(ctx, t, b.fit(ctx, t))
	if err == nil || ClassOf(err) != Overflow {
		return a, err
	}
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Context overflowed, compacting")
	b.inline(ctx, t, nil)
	t.cut = true
	half := b.frame.window.Usable() / 2
	v := emergency(t.view, func(v sessions.View) bool { return b.estimate(b.frame.assemble(v, t.asked, time.Now())) <= half })
	return b.loop(ctx, t, b.frame.assemble(v, t.asked, time.Now()))
}

// account counts what the turn appends and the context as it would be sent next: by the provider's report where there
// is one, else by our own count, corrected by what earlier reports taught.
func (b *Bot) account(t *turn, o *outcome) {
	for i := range o.events {
		e := &o.events[i]
		if e.Tokens > 0 {
			continue // counted when it came
		}
		e.Tokens = b.counter.Count(e.Content)
		for _, c := range e.ToolCalls {
			e.Tokens += b.counter.Count(c.Name) + b.counter.Count(c.Arguments)
		}
	}
	o.cal = t.view.Session.CalibrationFactor
	if o.dead {
		o.total = t.view.Session.TotalTokens // nothing enters the view
		return
	}
	if o.last.Prompt > 0 {
		o.cal = compaction.Calibrate(o.cal, o.last.Prompt, o.estimate)
	}
	if o.last.Prompt > 0 && !t.cut {
		o.total = o.last.Prompt + o.last.Completion + compaction.MessageOverhead
		return
	}
	o.total = b.size(t.view, o.cal) + calibrated(compaction.TokensOf(t.asked)+compaction.TokensOf(o.events), o.cal)
}

// commit writes the turn. While the storage is away it keeps trying: what a model answered is not thrown away for
// that, and the lease's term guards against a commit that comes too late.
func (b *Bot) commit(ctx context.Context, t *turn, o outcome) (sessions.Committed, error) {
	s := sessions.Turn{
		Events: o.events, TotalTokens: o.total, ObservedTokens: o.last.Prompt, Calibration: o.cal,
		Appended:     calibrated(compaction.TokensOf(t.asked)+compaction.TokensOf(o.events), o.cal),
		CompactedSeq: t.view.Session.CompactedSeq, Usage: o.usage, Model: o.model,
		Reply: &sessions.Reply{Target: target(t.asked), Text: o.text, Nonce: nonce(t.key, t.asked[0].ID)},
	}
	for _, e := range t.view.Pending[:len(t.asked)] { // counts of the whole bodies: the log has them
		s.Taken, s.TakenTokens = append(s.Taken, e.ID), append(s.TakenTokens, e.Tokens)
	}
	if o.mute {
		s.Reply = nil
	}
	if o.dead {
		s.Dead, s.Taken, s.TakenTokens, s.Events = s.Taken, nil, nil, nil
	}
	for _, e := range t.view.Pending[len(t.asked):] {
		s.Returned = append(s.Returned, e.ID)
	}
	return b.commitUntil(ctx, t.lease, s)
}

// commitUntil repeats a commit through an outage. A commit whose answer was lost is found out by the retry: its
// messages are no longer pending.
func (b *Bot) commitUntil(ctx context.Context, l sessions.Lease, s sessions.Turn) (sessions.Committed, error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
		done, err := b.store.Commit(one, l, s)
		stop()
		if err == nil || errors.Is(err, sessions.ErrLeaseLost) || errors.Is(err, sessions.ErrConflict) {
			return done, err
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Commit did not come through, trying again")
		select {
		case <-ctx.Done():
			return done, err
		case <-time.After(pause):
		}
	}
}

// giveBack uncounts the attempt of messages whose turn was cut off by a clean stop: nothing is wrong with them.
func (b *Bot) giveBack(ctx context.Context, t *turn, cause error) error {
	if !errors.Is(cause, ErrStop) {
		return fmt.Errorf("turn of session %s: %w", t.key, cause)
	}
	s := sessions.Turn{TotalTokens: t.view.Session.TotalTokens, CompactedSeq: t.view.Session.CompactedSeq, Calibration: t.view.Session.CalibrationFactor}
	for _, e := range t.view.Pending {
		s.Returned = append(s.Returned, e.ID)
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	if _, err := b.store.Commit(one, t.lease, s); err != nil {
		return fmt.Errorf("give back messages of session %s: %w", t.key, err)
	}
	return fmt.Errorf("turn of session %s: %w", t.key, cause)
}

// chat is where the turn's facts are said, and reader who reads memory in it.
func (t *turn) chat() memory.Chat {
	return memory.ChatOf(t.view.Session, append(append([]sessions.Event(nil), t.view.Tail...), t.asked...))
}

func (t *turn) reader() memory.Reader { return memory.ReaderOf(t.chat()) }

// target is where the reply to asked goes: to the conversation, by the freshest webhook, mentioning every asker once.
func target(asked []sessions.Event) sessions.Target {
	var g sessions.Target
	seen := map[sessions.UserID]bool{}
	for _, e := range asked {
		m := e.Message
		if m == nil {
			continue
		}
		g.RobotCode, g.ConversationID, g.ConversationType = m.RobotCode, m.ConversationID, m.ConversationType
		g.StaffID = m.StaffID
		if m.Webhook != "" && !m.WebhookExpires.Before(g.WebhookExpires) {
			g.Webhook, g.WebhookExpires = m.Webhook, m.WebhookExpires
		}
		if m.ConversationType != sessions.Private && !seen[m.SenderID] {
			seen[m.SenderID] = true
			g.Mentions = append(g.Mentions, sessions.Mention{StaffID: m.StaffID, Nick: m.SenderNick})
		}
	}
	return g
}

// nonce is the reply's idempotency key: the same for every try, whichever process makes it.
func nonce(key sessions.Key, event int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, event))
	return "ebb-" + hex.EncodeToString(sum[:12])
}
