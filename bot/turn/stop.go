package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

var errStopped = errors.New("turn was stopped by a member")

// stopError has the commands that stopped a turn.
type stopError struct{ by []sessions.Event }

func (e *stopError) Error() string { return errStopped.Error() }

func (e *stopError) Unwrap() error { return errStopped }

// NotRun is the result of a tool call that a stopped turn did not make.
const NotRun = "Not run: the turn was stopped."

const (
	// stopLook is for a /stop whose wake-up was lost.
	stopLook = 5 * time.Second
	// stopWindow bounds the look for a /stop to the newest messages.
	stopWindow = 100
)

// running signals new messages to the turn of each session, and knows its lease.
type running struct {
	mu    sync.Mutex
	turns map[sessions.Key]*runningTurn
}

type runningTurn struct {
	arrived chan struct{}
	lease   sessions.Lease // its zero value: no message is marked yet
}

func (r *running) enter(key sessions.Key) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns == nil {
		r.turns = map[sessions.Key]*runningTurn{}
	}
	r.turns[key] = &runningTurn{arrived: make(chan struct{}, 1)}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.turns, key)
	}
}

// hold notes the lease under which a turn marked its messages.
func (r *running) hold(l sessions.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.turns[l.Key]; t != nil {
		t.lease = l
	}
}

// Running lists the leases of running turns. Other work of a session may lose its lease meanwhile, and forget it.
func (r *Runner) Running() []sessions.Lease {
	r.running.mu.Lock()
	defer r.running.mu.Unlock()
	var leases []sessions.Lease
	for _, t := range r.running.turns {
		if t.lease != (sessions.Lease{}) {
			leases = append(leases, t.lease)
		}
	}
	return leases
}

// note never blocks.
func (r *running) note(key sessions.Key) {
	select {
	case r.arrivals(key) <- struct{}{}:
	default: // signaled before, or no turn runs
	}
}

// arrivals is nil without a running turn.
func (r *running) arrivals(key sessions.Key) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.turns[key]; t != nil {
		return t.arrived
	}
	return nil
}

func isStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errStopped) }

func hasLostLease(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), sessions.ErrLeaseLost)
}

// attend ends the returned context with errStopped at a /stop, and with ErrLeaseLost when an erasure or another replica ended the
// lease's term. It notifies members once of a long turn.
func (r *Runner) attend(ctx context.Context, t *Turn) (work context.Context, leave func()) {
	work, cancel := context.WithCancelCause(ctx)
	w := watch{
		Runner: r, lease: t.Lease, asked: slices.Clone(t.Asked), before: t.before, lang: t.Lang, arrived: r.running.arrivals(t.Key), live: t.live,
	}
	if len(t.stops) > 0 {
		cancel(&stopError{t.stops})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer logPanic(ctx)
		w.run(work, cancel)
	}()
	return work, func() {
		cancel(nil)
		<-done
	}
}

type watch struct {
	*Runner
	lease   sessions.Lease
	asked   []sessions.Event
	before  int64 // the newest event of the turns before
	lang    string
	arrived <-chan struct{}
	live    chat.Live // nil: not shown
}

func (w *watch) run(ctx context.Context, stop context.CancelCauseFunc) {
	look := time.NewTicker(stopLook)
	defer look.Stop()
	var long <-chan time.Time
	if w.cfg.BusyNote > 0 {
		note := time.NewTimer(w.cfg.BusyNote)
		defer note.Stop()
		long = note.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-long:
			if w.live == nil || !w.live.Visible() {
				w.notifyBusy(ctx)
			}
			continue
		case <-w.arrived:
		case <-look.C:
		}
		pending, err := w.pending(ctx, w.lease.Key)
		if err != nil {
			if ctx.Err() == nil {
				zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to look for a stop of the turn")
			}
			continue
		}
		if w.hasEnded(ctx, pending) {
			stop(sessions.ErrLeaseLost)
			return
		}
		if by := stopsAmong(w.handler, pending, w.asked, w.before); len(by) > 0 {
			stop(&stopError{by})
			return
		}
		waiting{w.Runner}.showFirst(ctx, w.lease, pending, w.asked)
	}
}

// hasEnded reports whether the storage has another lease. A session whose row an outsider deleted comes back under the turn's lease if
// its messages still wait.
func (w *watch) hasEnded(ctx context.Context, pending []sessions.Event) bool {
	one, stop := context.WithTimeout(ctx, w.cfg.CommitTimeout)
	defer stop()
	l, err := w.store.LeaseOf(one, w.lease.Key)
	switch {
	case err == nil:
		w.leases.Learn(l)
		return l != w.lease
	case errors.Is(err, sessions.ErrNotFound):
		return len(pending) < stopWindow && !slices.ContainsFunc(pending, func(e sessions.Event) bool { return e.ID == w.asked[0].ID })
	}
	return false
}

// endedBy returns the asked messages that a message ends. A message of their turn ends none. A button ends messages of its card's turn
// alone. A command that arrived before the newest event of earlier turns was meant for one of those.
func endedBy(c Commands, e sessions.Event, asked []sessions.Event, before int64) []sessions.Event {
	if slices.ContainsFunc(asked, func(a sessions.Event) bool { return a.ID == e.ID }) {
		return nil
	}
	if e.Message != nil && e.Message.Quiet && !slices.ContainsFunc(asked, func(a sessions.Event) bool {
		return chat.IsStopOf(e.MsgID, a)
	}) {
		return nil
	}
	if e.ID <= before {
		return nil
	}
	return c.Stops(e, asked)
}

// stopsAmong returns those of some messages that end asked ones.
func stopsAmong(c Commands, messages, asked []sessions.Event, before int64) []sessions.Event {
	var by []sessions.Event
	for _, e := range messages {
		if len(endedBy(c, e, asked, before)) > 0 {
			by = append(by, e)
		}
	}
	return by
}

// newestOf is 0 without earlier turns. A turn that goes on for other askers is none: their stops may have come before its commit.
func newestOf(v sessions.View) int64 {
	var goesOn, within bool
	for _, e := range slices.Backward(v.Tail) {
		if e.Role == sessions.RoleUser {
			goesOn, within = goesOn && !within || e.Message != nil && e.Message.Next != 0 &&
				slices.ContainsFunc(v.Pending, func(p sessions.Event) bool { return p.ID == e.Message.Next }), false
			continue
		}
		if !goesOn {
			return e.ID
		}
		within = true
	}
	if n := len(v.Summaries); n > 0 {
		return v.Summaries[n-1].EndMsgID
	}
	return 0
}

// pending lists the newest messages first.
func (r *Runner) pending(ctx context.Context, key sessions.Key) ([]sessions.Event, error) {
	one, stop := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer stop()
	return r.store.Pending(one, key, stopWindow)
}

func (w *watch) notifyBusy(ctx context.Context) {
	to := chat.TargetOf(w.asked)
	to.Mentions = nil
	one, stop := context.WithTimeout(ctx, w.cfg.CommitTimeout)
	defer stop()
	outs, err := w.store.Announce(one, w.lease, sessions.Reply{
		Target: to, Text: wording.Say(wording.StillBusy, w.lang), Nonce: chat.NoticeKey(w.lease.Key, w.asked[0]),
	})
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the notice of a long turn")
		w.outbox.Invalidate(w.lease.Key)
		return
	}
	w.outbox.Send(ctx, w.lease, outs, func() {})
}

// end makes the outcome of a stopped turn. Commands of some of its askers end their own messages alone: those of the others wait for a
// turn of their own, which begins at once. by are commands that were seen; others may have come meanwhile.
func (r *Runner) end(ctx context.Context, t *Turn, asked, by []sessions.Event, o *outcome) error {
	pending, err := r.pending(ctx, t.Key)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to look for further stops of the turn")
	}
	t.stops = slices.Clone(by)
	for _, e := range stopsAmong(r.handler, pending, asked, t.before) {
		if !slices.ContainsFunc(by, func(known sessions.Event) bool { return known.ID == e.ID }) {
			t.stops = append(t.stops, e)
		}
	}
	slices.SortFunc(t.stops, func(x, y sessions.Event) int { return cmp.Compare(x.ID, y.ID) })
	var ended []sessions.Event
	for i, e := range t.stops {
		t.stops[i].Tokens = r.counter.Count(e.Content)
		ended = append(ended, endedBy(r.handler, e, asked, t.before)...)
	}
	t.Asked = slices.Clone(asked)
	n := t.movedFirst(func(e sessions.Event) bool {
		return slices.ContainsFunc(ended, func(one sessions.Event) bool { return one.ID == e.ID })
	})
	t.plan.Take, t.Asked, t.others = n, t.Asked[:n], t.Asked[n:]
	o.said, o.last = strings.TrimSpace(o.text), sessions.Usage{}
	if len(t.others) > 0 {
		o.said, o.events, t.refusals = "", nil, refusals{} // they are about the others' messages too
		if err := passRuns(ctx, r, t); err != nil {
			return err
		}
	}
	o.text = strings.TrimSpace(o.said + "\n\n" + wording.Say(wording.CutShort, t.Lang))
	o.events = append(closeCalls(o.events), sessions.Event{Role: sessions.RoleAssistant, Content: o.text})
	return nil
}

// passRuns records calls of tools for the messages that wait on too: none with an effect is repeated. Facts that they saved from words of
// those messages go along.
func passRuns(ctx context.Context, r *Runner, t *Turn) error {
	if len(t.View.Runs) == 0 {
		return nil
	}
	var people []sessions.UserID
	for _, e := range t.others {
		people = append(people, e.SenderID)
	}
	err := r.persist(ctx, "Facts of a stopped turn not passed on, trying again", func(one context.Context) error {
		return r.memory.Pass(one, t.Lease, people)
	})
	if err != nil {
		return fmt.Errorf("pass facts on: %w", err)
	}
	for _, run := range t.View.Runs {
		if slices.ContainsFunc(t.others, func(e sessions.Event) bool { return e.ID == run.EventID }) {
			continue
		}
		run.EventID = t.others[0].ID
		if err := r.recordRun(ctx, t, run); err != nil {
			return fmt.Errorf("record call of %s: %w", run.Call.Name, err)
		}
	}
	return nil
}

// writeReceipt makes one message of the end of a turn and the answer to the commands that stopped it. A button gets no message: people
// see the end of the card. A card that answers other people goes on.
func writeReceipt(ctx context.Context, r *Runner, t *Turn, o *outcome) {
	typed := t.typedStops()
	if len(t.others) > 0 {
		o.card, o.mute = "", len(typed) == 0
	}
	if len(typed) > 0 {
		t.Lang = r.languages.Choose(t.View.Session.ConversationID, r.views.LanguageWords(slices.Concat(t.View.Tail, t.Asked), typed[0]))
		o.text = r.handler.Stopped(ctx, &t.Exchange, view.Stopped{Said: o.said, By: typed, Others: len(t.others) > 0, Shown: o.card != ""})
	}
}

func (t *Turn) typedStops() []sessions.Event {
	return slices.DeleteFunc(slices.Clone(t.stops), func(e sessions.Event) bool { return e.Message != nil && e.Message.Quiet })
}

func closeCalls(events []sessions.Event) []sessions.Event {
	known := map[string]bool{}
	for _, e := range slices.Backward(events) {
		if e.Role == sessions.RoleTool {
			known[e.ToolCallID] = true
			continue
		}
		for _, c := range e.ToolCalls {
			if !known[c.ID] {
				events = append(events, sessions.Event{Role: sessions.RoleTool, Content: view.Interrupted, ToolCallID: c.ID, ToolName: c.Name})
			}
		}
		break
	}
	return events
}

// estimateUse is for a call that a stop or the end of the lease ended, if its request was sent and the provider reported nothing.
func (r *Runner) estimateUse(t *Turn, a answer, resp *llm.Response) {
	at := len(resp.Parts) - 1
	if resp.Usage != (sessions.Usage{}) || at < 0 || resp.Parts[at].Requests == 0 {
		return
	}
	cal := t.View.Session.CalibrationFactor
	resp.Usage = sessions.Usage{Prompt: view.Calibrated(a.estimate, cal), Completion: view.Calibrated(r.counter.Count(resp.Text), cal)}
	resp.Cost = r.views.Price(resp.Parts[at].Model).Cost(resp.Usage)
}
