package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/draft"
	"ebb/sessions"
)

// turn is one way from waiting messages to a committed answer.
type turn struct {
	exchange
	plan           plan
	cut            bool             // the request is of a part of the view
	half           bool             // the provider found a request too large: half of the window is all that our counts are trusted with
	marked         []int64          // of the asked: those that look worth remembering
	found          []memory.Hit     // what memory has on the question
	searched       bool             // also where nothing was found
	recallRoom     int              // the most tokens that it takes in a request
	recalledTokens int              // what it takes in the request at hand, and in no later one
	sofar          []sessions.Event // what the model and its tools said in this turn up to now
	size           int              // our own count of the request, not calibrated
	seen           int              // percent of the long messages among the asked that a request shows; 0: all are shown whole
	stalled        bool             // the storage did not record a tool call at once
	delta          func(text string, reset bool)
}

// turn answers the session's waiting messages, or some of them: steps 3 to 8 of the way of a message. The storage is
// asked before and after the model, never held meanwhile. It reports whether messages still wait.
func (r *Runner) turn(ctx context.Context, key sessions.Key) (more bool, err error) {
	if !r.leases.Trusted() {
		return false, errHeartbeat
	}
	r.gather(ctx, key)
	// A statement that hangs takes a turn's place from nobody for long.
	one, stop := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer stop()
	lease, err := r.leases.Get(one, key)
	if err != nil {
		return false, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	defer func() { err = r.leases.Check(key, err) }()
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx = log.WithContext(ctx)

	if err := r.outbox.resume(log.WithContext(one), lease); err != nil {
		return false, err
	}
	if r.outbox.crowded(key) {
		return false, nil
	}
	ctx = asking(ctx, key)
	view, leave, err := r.begin(ctx, lease)
	defer leave()
	if errors.Is(err, ErrStop) {
		return true, nil // what waits in the log is for whose the session is next
	}
	if err != nil {
		return false, fmt.Errorf("begin turn of session %s: %w", key, err)
	}
	if err := r.views.quotes(ctx, lease, &view); err != nil {
		return false, fmt.Errorf("look up quotes of session %s: %w", key, err)
	}
	r.handler.confirmations(ctx, &view)
	return r.attempt(ctx, lease, view)
}

// take answers the messages that a turn takes, commits that, and sends the reply. It reports whether messages still wait.
func (r *Runner) take(ctx context.Context, t *turn) (more bool, err error) {
	log := zerolog.Ctx(ctx).With().Str("msg_id", string(t.asked[0].MsgID)).Logger()
	ctx = log.WithContext(ctx)
	r.stats.TurnBegun(t.key, t.asked)
	began := time.Now()
	a, err := r.answer(ctx, t)
	if err != nil {
		r.worker.charge(ctx, t.key, a.spending())
		return false, fmt.Errorf("turn of session %s: %w", t.key, err)
	}
	done, err := r.commit(ctx, t, a)
	if err != nil {
		r.outbox.doubt(t.key) // an answer that was lost may have left a reply behind
		return false, fmt.Errorf("commit turn of session %s: %w", t.key, err)
	}
	if t.plan.kind == kindStale {
		r.told.note(t.key, t.asked)
	}
	r.stats.TurnCommitted(t.key, t.plan.kind, t.asked, time.Since(began), r.now(), r.stopping())
	log.Info().Str("kind", t.plan.kind).Int("messages", len(t.asked)).Int("tokens", a.total).
		Dur("took_ms", time.Since(began)).Msg("Turn committed")
	r.outbox.send(ctx, t.lease, done.Replies, func() {
		if r.worker.due(t.after(a), a.total) || r.worker.factsDue(t.after(a).Session) {
			r.maintenance.Wake(t.key)
		}
	})
	return len(t.asked) < len(t.view.Pending) || t.view.More, nil
}

// errHeartbeat says that this replica can't be sure of its leases, and waits until it is.
var errHeartbeat = errors.New("heartbeat is overdue: leases can't be trusted")

// open decides what the turn takes and how, and prepares the events for a request.
func (r *Runner) open(lease sessions.Lease, view sessions.View) *turn {
	usable := r.views.settings(view.Session).Window.Usable()
	for i, room := 0, usable/2; i < len(view.Pending) && room >= 0; i++ { // no turn takes more
		view.Pending[i].Tokens = r.counter.Count(sessions.Lines(view.Pending[i].Content))
		room -= view.Pending[i].Tokens
	}
	t := &turn{exchange: exchange{key: lease.Key, lease: lease, view: view}}
	r.views.show(&t.view)
	t.plan = r.triage(view.Pending, usable, r.now())
	t.asked = append([]sessions.Event(nil), view.Pending[:t.plan.take]...)
	if len(t.asked) > 0 {
		last := t.asked[len(t.asked)-1]
		t.lang = r.languages.of(t.view.Session.ConversationID, r.views.ownWords(last))
		if r.cfg.Watch != nil {
			t.delta = r.cfg.Watch(t.key)
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
func (r *Runner) answer(ctx context.Context, t *turn) (outcome, error) {
	work, stop := context.WithTimeoutCause(ctx, r.cfg.TurnTimeout, errTurnTime)
	defer stop()
	var o outcome
	switch t.plan.kind {
	case kindCommand:
		o.text = r.handler.command(work, &t.exchange)
	case kindAsk:
		var err error
		o.answer, err = r.ask(work, t)
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		if err != nil && !t.isModelTrouble(work, err) {
			return o, err
		}
		if err != nil {
			zerolog.Ctx(ctx).Error().Err(err).Str("class", string(ClassOf(err))).Msg("Model gave no answer")
			o.text = apology(err, t.lang)
			o.events = append(dropOpenCalls(o.events), sessions.Event{Role: sessions.RoleAssistant, Content: o.text})
		}
	default:
		o.text, o.dead = t.plan.word(t.asked, t.lang, r.cfg.Location), t.plan.kind == kindDead
	}
	if t.seen > 0 && len(o.events) > 0 {
		o.text += say(sayShortened, t.lang, t.seen) // for people alone: the log has the model's words
	}
	r.mark(t)
	o.mute = t.plan.kind == kindStale && r.told.all(t.key, t.asked)
	if len(o.events) == 0 && !o.mute {
		o.events = []sessions.Event{{Role: sessions.RoleAssistant, Content: cmp.Or(t.kept, o.text)}}
	}
	r.account(t, &o)
	return o, nil
}

// errTurnTime is the cause with which a turn's own deadline ends it.
var errTurnTime = fmt.Errorf("turn took too long: %w", context.DeadlineExceeded)

// isModelTrouble tells a model's failure, which people read about, from the storage's, after which the turn runs again.
// Where the storage kept the turn waiting, the turn's deadline is the storage's.
func (t *turn) isModelTrouble(work context.Context, err error) bool {
	if context.Cause(work) == errTurnTime { //nolint:errorlint // the cause is that very value
		return !t.stalled
	}
	_, ok := errors.AsType[*ModelError](err)
	return ok
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
func (r *Runner) ask(ctx context.Context, t *turn) (answer, error) {
	a, err := r.loop(ctx, t, r.fit(ctx, t))
	if err == nil || ClassOf(err) != Overflow {
		return a, err
	}
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Context overflowed, compacting")
	r.inline(ctx, t, r.overflowed)
	t.cut, t.half = true, true
	half := r.views.settings(t.view.Session).Window.Usable() / 2
	v := r.views.emergency(r.views.capped(t.view), func(v sessions.View) bool { return r.views.estimate(v, t.asked)+t.recallRoom <= half })
	again, err := r.loop(ctx, t, r.request(t, v))
	again.usage, again.cost = again.usage.Add(a.usage), again.cost+a.cost
	return again, err
}

// account counts what the turn appends and the context as it would be sent next: by the provider's report where there
// is one, else by our own count, corrected by what earlier reports taught.
func (r *Runner) account(t *turn, o *outcome) {
	for i := range o.events {
		if o.events[i].Tokens == 0 { // else it was counted when it came
			o.events[i].Tokens = r.views.countEvent(o.events[i])
		}
	}
	o.cal = t.view.Session.CalibrationFactor
	if o.dead || t.plan.kind == kindCommand {
		o.total = t.view.Session.TotalTokens // nothing enters the view
		return
	}
	if o.last.Prompt > 0 {
		o.cal = tokens.Calibrate(o.cal, o.last.Prompt, o.estimate)
	}
	if o.last.Prompt > 0 && !t.cut {
		// What was recalled is gone by the next request.
		o.total = max(0, clamp(o.last.Prompt)-calibrated(t.recalledTokens, o.cal)) + clamp(o.last.Completion) + tokens.MessageOverhead
		return
	}
	// No report: what is known grows by what is appended, and is never less than our own count.
	appended := calibrated(compaction.TokensOf(t.asked)+compaction.TokensOf(o.events), o.cal)
	o.total = max(r.views.size(t.view, o.cal), t.view.Session.TotalTokens) + appended
}

// commit writes the turn. While the storage is away it keeps trying: what a model answered is not thrown away for
// that, and the lease's term guards against a commit that comes too late.
func (r *Runner) commit(ctx context.Context, t *turn, o outcome) (sessions.Committed, error) {
	s := sessions.Turn{
		Events: o.events, TotalTokens: o.total, ObservedTokens: clamp(o.last.Prompt), Calibration: o.cal,
		Appended:    calibrated(compaction.TokensOf(t.asked)+compaction.TokensOf(o.events), o.cal),
		ViewVersion: t.view.Session.ViewVersion, Usage: o.usage, Cost: o.cost, Model: o.model, Marked: t.marked, Pinned: t.pinned,
		Command: t.plan.kind == kindCommand, Outcome: t.outcome,
		Reply: &sessions.Reply{Target: target(t.asked), Text: o.text, Nonce: nonce(t.key, t.asked[0])},
	}
	if t.plan.kind == kindCommand {
		s.Appended = 0
	}
	for _, e := range t.view.Pending[:len(t.asked)] { // counts of the whole bodies: the log has them
		s.Taken, s.TakenTokens, s.TakenTexts = append(s.Taken, e.ID), append(s.TakenTokens, e.Tokens), append(s.TakenTexts, e.Content)
	}
	s.Reply.Target.Passing, s.ReplyWaits = t.kept != "", r.outbox.queued(t.key)
	if o.mute {
		s.Reply = nil
	}
	if o.dead {
		s.Dead, s.Taken, s.TakenTokens, s.TakenTexts, s.Events = s.Taken, nil, nil, nil, nil
	}
	return r.commitUntil(ctx, t.lease, s)
}

// commitUntil repeats a commit through an outage. A commit whose answer was lost is found out by the retry: its
// messages are no longer pending.
func (r *Runner) commitUntil(ctx context.Context, l sessions.Lease, s sessions.Turn) (done sessions.Committed, err error) {
	tries := 0
	err = r.persist(ctx, "Commit did not come through, trying again", func(one context.Context) (err error) {
		tries++
		done, err = r.store.Commit(one, l, s)
		return err
	})
	if tries == 1 && sessions.IsFinal(err) { // a later try may have met its own commit, which counted the spending
		r.worker.charge(ctx, l.Key, sessions.Spending{Kind: sessions.SpentTurn, Usage: s.Usage, Cost: s.Cost})
	}
	return done, err
}

// persist repeats a write while the storage is away, at least once and until ctx ends.
func (r *Runner) persist(ctx context.Context, trouble string, write func(context.Context) error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.CommitTimeout)
		err := write(one)
		stop()
		if err == nil || sessions.IsFinal(err) {
			return err
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg(trouble)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// after is the view as the turn leaves it, without the numbers that its commit gave.
func (t *turn) after(o outcome) sessions.View {
	v := t.view
	if !o.dead && t.plan.kind != kindCommand {
		v.Tail = slices.Concat(v.Tail, t.asked, o.events)
		v.Session.LastSeq += int64(len(t.asked) + len(o.events))
		v.Session.Candidates += len(t.marked)
	}
	return v
}

// chat is where the turn's facts are said, and reader who reads memory in it. What tools found in this very turn belongs
// to it: a fact that only they tell is nobody's word. Nor is what summaries tell, or what was recalled for the question.
func (t *turn) chat() draft.Chat {
	c := t.chatWith(t.sofar)
	for _, h := range t.found {
		c.Retold = append(c.Retold, h.Content)
	}
	return c
}

func (t *turn) reader() memory.Reader { return draft.ReaderOf(t.chat()) }

// current are the events of a running turn, whole, with the numbers that the commit will give them.
func (t *turn) current() []sessions.Event {
	events := slices.Concat(t.view.Pending[:len(t.asked)], t.sofar)
	for i := range events {
		events[i].Seq = t.next() + int64(i)
	}
	return events
}

// next is the number of the turn's first event.
func (t *turn) next() int64 { return t.view.Session.LastSeq + 1 }

// mark notes which of the turn's messages look worth remembering: people's own words, as they were said. It is a cheap
// look that asks no model.
func (r *Runner) mark(t *turn) {
	if t.plan.kind != kindAsk && t.plan.kind != kindStale {
		return
	}
	t.marked = nil
	for _, e := range t.asked {
		if classify.Candidate(r.views.ownWords(e)) {
			t.marked = append(t.marked, e.ID)
		}
	}
}
