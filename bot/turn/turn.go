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
	"ebb/sessions/retry"
)

// Turn is an attempt to answer waiting messages.
type Turn struct {
	view.Exchange
	plan           plan
	reached        *sessions.Reached // for kindLimited
	partial        bool              // the request shows a part of the view
	halfWindow     bool              // the provider refused a request as too large: our counts may use half of the window only
	marked         []int64           // candidates for facts among the asked
	Found          []memory.Hit      // memory recalled for the question
	searched       bool              // also if nothing was found
	read           []int64           // recalled, or read by tools
	recallRoom     int               // maximum tokens of Found in a request
	recalledTokens int               // in the current request
	events         []sessions.Event  // from the model and its tools so far
	size           int               // our own count of the request, not calibrated
	shownShare     int               // shown percentage of the long messages among the asked; 0: all are whole
	before         int64             // id of the newest event of the turns before
	isStopped      bool              // by a member
	stops          []sessions.Event  // commands that stop it; before it began those that waited
	others         []sessions.Event  // messages of a stopped turn that the commands did not end
	stalled        bool              // the storage did not record a tool call at once
	live           chat.Live         // nil: not shown
	work           work
	refusals       refusals
}

// RunTurn is steps 3 to 8 of a message's path. more reports whether messages still wait.
func (r *Runner) RunTurn(ctx context.Context, key sessions.Key) (more bool, err error) {
	if !r.leases.Trusted() {
		return false, ErrHeartbeat
	}
	waiting{r}.show(ctx, key)
	r.gather(ctx, key)
	defer r.cfg.Current.Pin(key)()
	for before := new(againError); ; {
		more, err = opening{r, before}.run(ctx, key)
		again, ok := errors.AsType[*againError](err)
		if !ok {
			return more, err
		}
		before = again
	}
}

type opening struct {
	*Runner
	before *againError // the end of the last run; its zero value: none
}

func (r opening) run(ctx context.Context, key sessions.Key) (more bool, err error) {
	// The timeout frees the slot when a statement hangs.
	one, stop := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer stop()
	defer func() { err = r.leases.Check(key, err) }()
	lease, err := r.lease(one, key)
	if err != nil {
		return false, err
	}
	if r.outbox.Backpressured(key) {
		return false, nil
	}
	ctx = llm.WithWaiter(ctx, key)
	defer r.running.enter(key)() // before the view is read: each later message is noted
	lease, view, p, err := r.begin(ctx, lease)
	defer p.leave()
	if errors.Is(err, llm.ErrStop) {
		return true, nil // the next owner answers the messages in the log
	}
	if err != nil {
		return false, err
	}
	r.running.hold(lease)
	ctx = withLease(ctx, lease)
	if err := r.views.Quotes(ctx, lease, &view); err != nil {
		return false, err
	}
	r.handler.Confirmations(ctx, &view)
	return r.attempt(ctx, lease, view, p.stop)
}

func (r *Runner) answerAndCommit(ctx context.Context, t *Turn) (more bool, err error) {
	log := zerolog.Ctx(ctx).With().Str("msg_id", string(t.Asked[0].MsgID)).Logger()
	ctx = log.WithContext(ctx)
	r.stats.TurnBegun(t.Key, t.Asked)
	began := time.Now()
	if t.live = r.show(ctx, t); t.live != nil {
		defer t.live.Stop() // after a panic, too
	}
	a, err := r.answer(ctx, t)
	if t.live != nil {
		a.card = t.live.Stop()
	}
	if err != nil {
		r.worker.Charge(ctx, t.Key, a.spending())
		return false, err
	}
	if t.isStopped {
		writeReceipt(ctx, r, t, &a)
	}
	done, err := r.commit(ctx, t, a)
	if err != nil {
		r.outbox.Invalidate(t.Key) // a commit with a lost answer may have stored a reply
		return false, err
	}
	r.spend(ctx, t, a.usage)
	if t.plan.Kind == kindStale {
		r.staleNotices.record(t.Key, t.Asked)
	}
	r.stats.TurnCommitted(t.Key, t.plan.Kind, slices.Concat(t.Asked, t.stops), time.Since(began), r.now(), r.stopping())
	log.Info().Str("kind", t.plan.Kind).Int("messages", len(t.Asked)).Int("tokens", a.total).
		Dur("took_ms", time.Since(began)).EmbedObject(used{t.work, a.answer}).Msg("Turn committed")
	r.outbox.Send(ctx, t.Lease, done.Replies, func() {
		if v := t.after(a); r.worker.Due(v, a.total) || r.worker.FactsDue(v.Session) {
			r.maintenance.Wake(t.Key)
		}
	})
	return t.isStopped || len(t.Asked) < len(t.View.Pending) || t.View.More, nil
}

// ErrHeartbeat means that this replica can't be sure of its leases until its next heartbeat.
var ErrHeartbeat = errors.New("heartbeat is overdue: leases can't be trusted")

// openTurn takes messages from the first n that wait; 0: from all.
func (r *Runner) openTurn(lease sessions.Lease, itsView sessions.View, n int) *Turn {
	usable := r.views.Settings(itsView.Session).Window.Usable()
	for i, room := 0, usable/2; i < len(itsView.Pending) && room >= 0; i++ { // no turn takes more
		itsView.Pending[i].Tokens = r.counter.Count(sessions.Lines(itsView.Pending[i].Content))
		room -= itsView.Pending[i].Tokens
	}
	t := &Turn{Exchange: view.Exchange{Key: lease.Key, Lease: lease, View: itsView}, before: newestOf(itsView)}
	r.views.Show(&t.View)
	t.plan = r.triage(itsView.Pending[:cmp.Or(n, len(itsView.Pending))], usable, r.now())
	t.Asked = append([]sessions.Event(nil), itsView.Pending[:t.plan.Take]...)
	if len(t.Asked) > 0 {
		others, last := t.Asked[:len(t.Asked)-1], t.Asked[len(t.Asked)-1]
		t.Lang = r.languages.Choose(t.View.Session.ConversationID, r.views.LanguageWords(slices.Concat(itsView.Tail, others), last))
		r.spoken.Add(lease.Key, t.Lang)
	}
	return t
}

// sentPatience bounds the wait of a display for the session's earlier replies. Without faults they are sent within it.
const sentPatience = time.Second

func (r *Runner) show(ctx context.Context, t *Turn) chat.Live {
	if r.cfg.Display == nil || t.plan.Kind != kindAsk {
		return nil
	}
	return r.cfg.Display.Show(ctx, shown(r, t.Lease, t.Asked, t.Lang))
}

func shown(r *Runner, l sessions.Lease, asked []sessions.Event, lang string) chat.Shown {
	s := chat.Shown{
		Lease: l, Asked: asked, Target: chat.TargetOf(asked), Lang: lang,
		Look: func() { r.running.note(l.Key) },
		Sent: func(ctx context.Context) bool {
			return r.outbox.AwaitSent(ctx, l.Key, chat.TargetOf(asked), sentPatience)
		},
	}
	for _, e := range asked {
		s.Tracks = append(s.Tracks, chat.ReplyKey(l.Key, e))
	}
	return s
}

type outcome struct {
	answer
	card  string // the reply goes on it; empty for none
	dead  bool
	mute  bool   // without a reply: the senders have a notice
	said  string // words of a stopped answer
	total int    // for the next request's context
	cal   float64
}

// answer makes an answer of a model failure. After an error the messages must be tried again.
func (r *Runner) answer(ctx context.Context, t *Turn) (outcome, error) {
	work, stop := context.WithTimeoutCause(ctx, r.cfg.TurnTimeout, errTurnTime)
	defer stop()
	var o outcome
	switch t.plan.Kind {
	case kindCommand:
		o.text = metered(work, r, t)
		r.running.hold(t.Lease) // an erasure gave the turn another
	case kindAsk:
		attended, leave := r.attend(work, t)
		var err error
		asked := slices.Clone(t.Asked)
		o.answer, err = r.askModel(attended, t)
		leave()
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		if hasLostLease(attended) {
			return o, context.Cause(attended)
		}
		if t.isStopped = err != nil && isStopped(attended); t.isStopped {
			by, _ := errors.AsType[*stopError](context.Cause(attended))
			if err := r.end(ctx, t, asked, by.by, &o); err != nil {
				return o, err
			}
			break
		}
		if err != nil && !t.isModelFault(work, err) {
			return o, err
		}
		if err != nil {
			zerolog.Ctx(ctx).Error().Err(err).Str("class", string(llm.ClassOf(err))).Msg("Model gave no answer")
			o.text = apology(err, t.Lang)
			o.events = dropOpenCalls(o.events)
			if t.refusals.guilty != nil {
				t.withhold(o.events)
			}
			o.events = append(o.events, sessions.Event{Role: sessions.RoleAssistant, Content: o.text})
		}
	case kindRemind, kindMissed:
		o.text = r.scheduledAnswer(t, r.now())
		o.mute = o.text == ""
	case kindLimited:
		var err error
		if o.text, err = r.notifyLimit(work, t); err != nil {
			return o, err
		}
		o.mute, t.Outcome = o.text == "", sessions.Limited
	default:
		o.text, o.dead = t.plan.fixedAnswer(t.Asked, t.Lang, r.cfg.Location), t.plan.Kind == kindDead
	}
	if t.shownShare > 0 && len(o.events) > 0 {
		o.text += wording.Say(wording.Shortened, t.Lang, t.shownShare) // for people only: the log has the model's text
	}
	r.markCandidates(t)
	o.mute = o.mute || t.plan.Kind == kindStale && r.staleNotices.cover(t.Key, t.Asked) ||
		t.plan.Kind == kindCommand && t.Asked[0].Message.Quiet
	if len(o.events) == 0 && !o.mute && t.plan.Kind != kindLimited {
		o.events = []sessions.Event{{Role: sessions.RoleAssistant, Content: cmp.Or(t.Kept, o.text)}}
	}
	r.countTokens(ctx, t, &o)
	return o, nil
}

var errTurnTime = fmt.Errorf("turn took too long: %w", context.DeadlineExceeded)

// isModelFault separates a failure of the model, which people read about, from one of the storage, after which the turn
// runs again. A deadline that expired in a stalled storage is a storage failure.
func (t *Turn) isModelFault(work context.Context, err error) bool {
	if context.Cause(work) == errTurnTime { //nolint:errorlint // the cause is that very value
		return !t.stalled
	}
	_, ok := errors.AsType[*llm.CallError](err)
	return ok
}

func dropOpenCalls(events []sessions.Event) []sessions.Event {
	for i := len(events) - 1; i >= 0 && events[i].Role != sessions.RoleTool; i-- {
		if len(events[i].ToolCalls) > 0 {
			return events[:i]
		}
	}
	return events
}

// askModel runs the loop once more on the emergency view if the provider finds the request too large, or may do so. If it refuses
// the request, the question is asked alone.
func (r *Runner) askModel(ctx context.Context, t *Turn) (answer, error) {
	a, err := r.loop(ctx, t, r.fitRequest(ctx, t))
	refused := refusedBy(a.resp, err)
	switch {
	case err == nil && t.refusals.passed != nil: // another model answered
		t.refusals.suspicion = t.suspects(r.now(), t.refusals.passed).Join(t.refusals.suspicion)
		r.stats.RequestRefused(RefusedHistory)
		return a, nil
	case err == nil || isStopped(ctx):
		return a, err
	}
	if isTooLarge(err, a.estimate, r.views.Settings(t.View.Session).Window) {
		var half answer
		half, err = askHalf(ctx, r, t, err)
		a = half.after(a)
		refused = refusedBy(half.resp, err)
	}
	if err != nil && refused != nil && t.refusals.left() > 0 && !isStopped(ctx) {
		var alone answer
		alone, err = defence{r, t}.askAlone(ctx, refused)
		if alone = alone.after(a); err != nil {
			alone.events = a.events // the log keeps the calls
		}
		a = alone
	}
	return a, err
}

// after adds the usage of a request before.
func (a answer) after(before answer) answer {
	a.usage, a.cost, a.model = a.usage.Add(before.usage), a.cost+before.cost, cmp.Or(a.model, before.model)
	return a
}

func askHalf(ctx context.Context, r *Runner, t *Turn, err error) (answer, error) {
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Context overflowed, compacting")
	if llm.ClassOf(err) == llm.Overflow {
		r.compactInline(ctx, t, r.overflowTrigger)
	}
	t.partial, t.halfWindow = true, true
	if t.refusals.most > 0 {
		t.refusals.most = max(t.refusals.most, t.refusals.made+2) // the half, and the question alone
	}
	half := r.views.Settings(t.View.Session).Window.Usable() / 2
	v := r.views.TrimToFit(r.views.TrimToPolicy(t.View), func(v sessions.View) bool { return r.views.Estimate(v, t.Asked)+t.recallRoom <= half })
	return r.loop(ctx, t, r.buildRequest(t, v))
}

// countTokens uses the provider's report if it can be one, or else our own count, calibrated by earlier reports.
func (r *Runner) countTokens(ctx context.Context, t *Turn, o *outcome) {
	for i := range o.events {
		if o.events[i].Tokens == 0 { // others were counted when appended
			o.events[i].Tokens = r.views.CountEvent(o.events[i])
		}
	}
	o.cal = t.View.Session.CalibrationFactor
	if o.dead || t.apart() {
		o.total = t.View.Session.TotalTokens // nothing enters the view
		return
	}
	if o.ended {
		o.last = sessions.Usage{}
	}
	if o.last.Prompt > 0 && (o.guessed || !tokens.IsMeasured(o.last.Prompt, o.estimate)) {
		r.stats.ReportDoubted(o.model)
		r.suspectReports.warn(ctx, *o)
		o.cal, o.last = max(o.cal, 1), sessions.Usage{} // a server that cuts requests reported less than it should before, too
	}
	if o.last.Prompt > 0 {
		o.cal = tokens.Calibrate(o.cal, o.last.Prompt, o.estimate)
	}
	if o.last.Prompt > 0 && !t.partial {
		// The next request has no recalled memory.
		o.total = max(0, llm.Clamp(o.last.Prompt)-view.Calibrated(t.recalledTokens, o.cal)) + llm.Clamp(o.last.Completion) + tokens.MessageOverhead
		return
	}
	// Without a report the known total grows by the appended tokens, and is at least our own count.
	o.total = max(r.views.Size(t.View, o.cal), t.View.Session.TotalTokens) + o.appendedTokens(t, r.views)
}

// appendedTokens is the growth of the view, which shows large bodies shortened.
func (o *outcome) appendedTokens(t *Turn, views *view.Builder) int {
	shown := slices.Concat(t.Asked, o.events)
	view.Shrink(shown, views.Settings(t.View.Session).Window.Usable(), 1)
	return view.Calibrated(compaction.TokensOf(shown), o.cal)
}

func (r *Runner) commit(ctx context.Context, t *Turn, o outcome) (sessions.Committed, error) {
	s := sessions.Turn{
		Events: o.events, TotalTokens: o.total, ObservedTokens: llm.Clamp(o.last.Prompt), Calibration: o.cal,
		Appended:    o.appendedTokens(t, r.views),
		ViewVersion: t.View.Session.ViewVersion, Usage: o.usage, Cost: o.cost, Model: o.model, Marked: t.marked, Pinned: t.Pinned, Read: t.read,
		Command: t.apart(), Outcome: t.Outcome, Ran: len(t.View.Runs) > 0,
		Reply: &sessions.Reply{Target: chat.TargetOf(slices.Concat(t.Asked, t.typedStops())), Text: o.text, Nonce: chat.ReplyKey(t.Key, t.Asked[0])},
		Stops: t.stops,
	}
	if len(t.others) > 0 {
		s.CardTo = t.others[0].ID
	}
	if s.Reply.Target.Scheduled {
		s.Reply.Target.Late = lateNote(t)
	}
	if t.apart() {
		s.Appended = 0
	}
	for _, e := range t.View.Pending[:len(t.Asked)] { // counts of the whole bodies, as in the log
		s.Taken, s.TakenTokens = append(s.Taken, e.ID), append(s.TakenTokens, e.Tokens)
		s.Askers = append(s.Askers, e.SenderID)
	}
	for _, e := range t.View.Pending[len(t.Asked):] {
		s.Left = append(s.Left, e.ID)
	}
	s.TakenWithheld, s.Suspicion = t.marks()
	s.Reply.Target.Passing, s.Reply.Target.Card = t.Kept != "", o.card
	s.ReplyWaits = r.outbox.Queued(t.Key, o.card != "")
	if o.mute {
		s.Reply = nil
	}
	if o.dead {
		s.Dead, s.Taken, s.TakenTokens, s.Events = s.Taken, nil, nil, nil
	}
	return r.commitUntil(ctx, t.Lease, s)
}

// commitUntil repeats a commit through an outage, so that the answer is not lost. A retry detects a commit whose answer
// was lost: its messages are no longer pending. The lease's term guards against a late one.
func (r *Runner) commitUntil(ctx context.Context, l sessions.Lease, s sessions.Turn) (done sessions.Committed, err error) {
	tries := 0
	err = r.persist(ctx, "Commit failed, trying again", func(one context.Context) (err error) {
		tries++
		done, err = r.store.Commit(one, l, s)
		return err
	})
	if tries == 1 && sessions.IsFinal(err) { // a retry may have met its own commit, which counted the spending
		r.worker.Charge(ctx, l.Key, sessions.Spending{Kind: sessions.SpentTurn, Usage: s.Usage, Cost: s.Cost, Model: s.Model})
	}
	return done, err
}

// persist repeats a write until ctx ends while the storage is unavailable, and at least once. event is the log message
// of a failure.
func (r *Runner) persist(ctx context.Context, event string, write func(context.Context) error) error {
	return retry.Do(ctx, retry.Storage, func() error {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.CommitTimeout)
		defer stop()
		err := write(one)
		if err != nil && sessions.IsFinal(err) {
			return retry.Permanent(err)
		}
		if err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg(event)
		}
		return err
	})
}

// apart reports whether messages and answer are no part of the conversation, by the same rule as [view.Builder.IsCommand].
func (t *Turn) apart() bool {
	return t.plan.Kind == kindCommand || t.plan.Kind == kindLimited || t.plan.Kind == kindRemind
}

// after lacks the sequence numbers of the commit.
func (t *Turn) after(o outcome) sessions.View {
	v := t.View
	if !o.dead && !t.apart() {
		v.Tail = slices.Concat(v.Tail, t.Asked, o.events)
		v.Session.LastSeq += int64(len(t.Asked) + len(o.events) + len(t.stops))
		v.Session.Candidates += len(t.marked)
		if _, s := t.marks(); s != nil {
			v.Session.Suspicion = s
		}
	}
	return v
}

// Chat lists texts of tools, summaries and recalled memory: a fact from them alone is no member's own statement.
func (t *Turn) Chat() draft.Chat {
	c := t.ChatWith(t.events)
	for _, h := range t.Found {
		c.Retold = append(c.Retold, h.Content)
	}
	return c
}

func (t *Turn) reader() memory.Reader { return draft.ReaderOf(t.Chat()) }

// current numbers the events of a running turn as its commit will.
func (t *Turn) current() []sessions.Event {
	events := slices.Concat(t.View.Pending[:len(t.Asked)], t.events)
	for i := range events {
		events[i].Seq = t.next() + int64(i)
	}
	return events
}

func (t *Turn) next() int64 { return t.View.Session.LastSeq + 1 }

func (r *Runner) markCandidates(t *Turn) {
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
