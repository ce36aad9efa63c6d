package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/draft"
	"ebb/sessions"
)

// Turn is one way from waiting messages to a committed answer.
type Turn struct {
	view.Exchange
	plan           plan
	cut            bool             // the request is of a part of the view
	half           bool             // the provider found a request too large: half of the window is all that our counts are trusted with
	marked         []int64          // of the asked: those that look worth remembering
	Found          []memory.Hit     // what memory has on the question
	searched       bool             // also where nothing was found
	recallRoom     int              // the most tokens that it takes in a request
	recalledTokens int              // what it takes in the request at hand, and in no later one
	sofar          []sessions.Event // what the model and its tools said in this turn up to now
	size           int              // our own count of the request, not calibrated
	seen           int              // percent of the long messages among the asked that a request shows; 0: all are shown whole
	stalled        bool             // the storage did not record a tool call at once
	delta          func(text string, reset bool)
}

// Turn answers the session's waiting messages, or some of them: steps 3 to 8 of the way of a message. The storage is
// asked before and after the model, never held meanwhile. It reports whether messages still wait.
func (r *Runner) Turn(ctx context.Context, key sessions.Key) (more bool, err error) {
	if !r.leases.Trusted() {
		return false, ErrHeartbeat
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

	if err := r.outbox.Resume(log.WithContext(one), lease); err != nil {
		return false, err
	}
	if r.outbox.Crowded(key) {
		return false, nil
	}
	ctx = llm.WithWaiter(ctx, key)
	view, leave, err := r.begin(ctx, lease)
	defer leave()
	if errors.Is(err, llm.ErrStop) {
		return true, nil // what waits in the log is for whose the session is next
	}
	if err != nil {
		return false, fmt.Errorf("begin turn of session %s: %w", key, err)
	}
	if err := r.views.Quotes(ctx, lease, &view); err != nil {
		return false, fmt.Errorf("look up quotes of session %s: %w", key, err)
	}
	r.handler.Confirmations(ctx, &view)
	return r.attempt(ctx, lease, view)
}

// take answers the messages that a turn takes, commits that, and sends the reply. It reports whether messages still wait.
func (r *Runner) take(ctx context.Context, t *Turn) (more bool, err error) {
	log := zerolog.Ctx(ctx).With().Str("msg_id", string(t.Asked[0].MsgID)).Logger()
	ctx = log.WithContext(ctx)
	r.stats.TurnBegun(t.Key, t.Asked)
	began := time.Now()
	a, err := r.answer(ctx, t)
	if err != nil {
		r.worker.Charge(ctx, t.Key, a.spending())
		return false, fmt.Errorf("turn of session %s: %w", t.Key, err)
	}
	done, err := r.commit(ctx, t, a)
	if err != nil {
		r.outbox.Doubt(t.Key) // an answer that was lost may have left a reply behind
		return false, fmt.Errorf("commit turn of session %s: %w", t.Key, err)
	}
	if t.plan.Kind == kindStale {
		r.told.note(t.Key, t.Asked)
	}
	r.stats.TurnCommitted(t.Key, t.plan.Kind, t.Asked, time.Since(began), r.now(), r.stopping())
	log.Info().Str("kind", t.plan.Kind).Int("messages", len(t.Asked)).Int("tokens", a.total).
		Dur("took_ms", time.Since(began)).Msg("Turn committed")
	r.outbox.Send(ctx, t.Lease, done.Replies, func() {
		if r.worker.Due(t.after(a), a.total) || r.worker.FactsDue(t.after(a).Session) {
			r.maintenance.Wake(t.Key)
		}
	})
	return len(t.Asked) < len(t.View.Pending) || t.View.More, nil
}

// ErrHeartbeat says that this replica can't be sure of its leases, and waits until it is.
var ErrHeartbeat = errors.New("heartbeat is overdue: leases can't be trusted")

// Open decides what the turn takes and how, and prepares the events for a request.
func (r *Runner) Open(lease sessions.Lease, itsView sessions.View) *Turn {
	usable := r.views.Settings(itsView.Session).Window.Usable()
	for i, room := 0, usable/2; i < len(itsView.Pending) && room >= 0; i++ { // no turn takes more
		itsView.Pending[i].Tokens = r.counter.Count(sessions.Lines(itsView.Pending[i].Content))
		room -= itsView.Pending[i].Tokens
	}
	t := &Turn{Exchange: view.Exchange{Key: lease.Key, Lease: lease, View: itsView}}
	r.views.Show(&t.View)
	t.plan = r.Triage(itsView.Pending, usable, r.now())
	t.Asked = append([]sessions.Event(nil), itsView.Pending[:t.plan.Take]...)
	if len(t.Asked) > 0 {
		last := t.Asked[len(t.Asked)-1]
		t.Lang = r.languages.Of(t.View.Session.ConversationID, r.views.OwnWords(last))
		if r.cfg.Watch != nil {
			t.delta = r.cfg.Watch(t.Key)
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
func (r *Runner) answer(ctx context.Context, t *Turn) (outcome, error) {
	work, stop := context.WithTimeoutCause(ctx, r.cfg.TurnTimeout, errTurnTime)
	defer stop()
	var o outcome
	switch t.plan.Kind {
	case kindCommand:
		o.text = r.handler.Command(work, &t.Exchange)
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
			zerolog.Ctx(ctx).Error().Err(err).Str("class", string(llm.ClassOf(err))).Msg("Model gave no answer")
			o.text = apology(err, t.Lang)
			o.events = append(dropOpenCalls(o.events), sessions.Event{Role: sessions.RoleAssistant, Content: o.text})
		}
	default:
		o.text, o.dead = t.plan.word(t.Asked, t.Lang, r.cfg.Location), t.plan.Kind == kindDead
	}
	if t.seen > 0 && len(o.events) > 0 {
		o.text += wording.Say(wording.Shortened, t.Lang, t.seen) // for people alone: the log has the model's words
	}
	r.Mark(t)
	o.mute = t.plan.Kind == kindStale && r.told.all(t.Key, t.Asked)
	if len(o.events) == 0 && !o.mute {
		o.events = []sessions.Event{{Role: sessions.RoleAssistant, Content: cmp.Or(t.Kept, o.text)}}
	}
	r.account(t, &o)
	return o, nil
}

// errTurnTime is the cause with which a turn's own deadline ends it.
var errTurnTime = fmt.Errorf("turn took too long: %w", context.DeadlineExceeded)

// isModelTrouble tells a model's failure, which people read about, from the storage's, after which the turn runs again.
// Where the storage kept the turn waiting, the turn's deadline is the storage's.
func (t *Turn) isModelTrouble(work context.Context, err error) bool {
	if context.Cause(work) == errTurnTime { //nolint:errorlint // the cause is that very value
		return !t.stalled
	}
	_, ok := errors.AsType[*llm.CallError](err)
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
func (r *Runner) ask(ctx context.Context, t *Turn) (answer, error) {
	a, err := r.loop(ctx, t, r.fit(ctx, t))
	if err == nil || llm.ClassOf(err) != llm.Overflow {
		return a, err
	}
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Context overflowed, compacting")
	r.inline(ctx, t, r.overflowed)
	t.cut, t.half = true, true
	half := r.views.Settings(t.View.Session).Window.Usable() / 2
	v := r.views.TrimToFit(r.views.TrimToPolicy(t.View), func(v sessions.View) bool { return r.views.Estimate(v, t.Asked)+t.recallRoom <= half })
	again, err := r.loop(ctx, t, r.Request(t, v))
	again.usage, again.cost = again.usage.Add(a.usage), again.cost+a.cost
	return again, err
}

// account counts what the turn appends and the context as it would be sent next: by the provider's report where there
// is one, else by our own count, corrected by what earlier reports taught.
func (r *Runner) account(t *Turn, o *outcome) {
	for i := range o.events {
		if o.events[i].Tokens == 0 { // else it was counted when it came
			o.events[i].Tokens = r.views.CountEvent(o.events[i])
		}
	}
	o.cal = t.View.Session.CalibrationFactor
	if o.dead || t.plan.Kind == kindCommand {
		o.total = t.View.Session.TotalTokens // nothing enters the view
		return
	}
	if o.last.Prompt > 0 {
		o.cal = tokens.Calibrate(o.cal, o.last.Prompt, o.estimate)
	}
	if o.last.Prompt > 0 && !t.cut {
		// What was recalled is gone by the next request.
		o.total = max(0, llm.Clamp(o.last.Prompt)-view.Calibrated(t.recalledTokens, o.cal)) + llm.Clamp(o.last.Completion) + tokens.MessageOverhead
		return
	}
	// No report: what is known grows by what is appended, and is never less than our own count.
	appended := view.Calibrated(compaction.TokensOf(t.Asked)+compaction.TokensOf(o.events), o.cal)
	o.total = max(r.views.Size(t.View, o.cal), t.View.Session.TotalTokens) + appended
}

// commit writes the turn. While the storage is away it keeps trying: what a model answered is not thrown away for
// that, and the lease's term guards against a commit that comes too late.
func (r *Runner) commit(ctx context.Context, t *Turn, o outcome) (sessions.Committed, error) {
	s := sessions.Turn{
		Events: o.events, TotalTokens: o.total, ObservedTokens: llm.Clamp(o.last.Prompt), Calibration: o.cal,
		Appended:    view.Calibrated(compaction.TokensOf(t.Asked)+compaction.TokensOf(o.events), o.cal),
		ViewVersion: t.View.Session.ViewVersion, Usage: o.usage, Cost: o.cost, Model: o.model, Marked: t.marked, Pinned: t.Pinned,
		Command: t.plan.Kind == kindCommand, Outcome: t.Outcome,
		Reply: &sessions.Reply{Target: chat.TargetOf(t.Asked), Text: o.text, Nonce: chat.ReplyKey(t.Key, t.Asked[0])},
	}
	if t.plan.Kind == kindCommand {
		s.Appended = 0
	}
	for _, e := range t.View.Pending[:len(t.Asked)] { // counts of the whole bodies: the log has them
		s.Taken, s.TakenTokens, s.TakenTexts = append(s.Taken, e.ID), append(s.TakenTokens, e.Tokens), append(s.TakenTexts, e.Content)
	}
	s.Reply.Target.Passing, s.ReplyWaits = t.Kept != "", r.outbox.Queued(t.Key)
	if o.mute {
		s.Reply = nil
	}
	if o.dead {
		s.Dead, s.Taken, s.TakenTokens, s.TakenTexts, s.Events = s.Taken, nil, nil, nil, nil
	}
	return r.commitUntil(ctx, t.Lease, s)
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
		r.worker.Charge(ctx, l.Key, sessions.Spending{Kind: sessions.SpentTurn, Usage: s.Usage, Cost: s.Cost})
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
func (t *Turn) after(o outcome) sessions.View {
	v := t.View
	if !o.dead && t.plan.Kind != kindCommand {
		v.Tail = slices.Concat(v.Tail, t.Asked, o.events)
		v.Session.LastSeq += int64(len(t.Asked) + len(o.events))
		v.Session.Candidates += len(t.marked)
	}
	return v
}

// Chat is where the turn's facts are said, and reader who reads memory in it. What tools found in this very turn belongs
// to it: a fact that only they tell is nobody's word. Nor is what summaries tell, or what was recalled for the question.
func (t *Turn) Chat() draft.Chat {
	c := t.ChatWith(t.sofar)
	for _, h := range t.Found {
		c.Retold = append(c.Retold, h.Content)
	}
	return c
}

func (t *Turn) reader() memory.Reader { return draft.ReaderOf(t.Chat()) }

// current are the events of a running turn, whole, with the numbers that the commit will give them.
func (t *Turn) current() []sessions.Event {
	events := slices.Concat(t.View.Pending[:len(t.Asked)], t.sofar)
	for i := range events {
		events[i].Seq = t.next() + int64(i)
	}
	return events
}

// next is the number of the turn's first event.
func (t *Turn) next() int64 { return t.View.Session.LastSeq + 1 }

// Mark notes which of the turn's messages look worth remembering: people's own words, as they were said. It is a cheap
// look that asks no model.
func (r *Runner) Mark(t *Turn) {
	if t.plan.Kind != kindAsk && t.plan.Kind != kindStale {
		return
	}
	t.marked = nil
	for _, e := range t.Asked {
		if classify.Candidate(r.views.OwnWords(e)) {
			t.marked = append(t.marked, e.ID)
		}
	}
}
