package turn

import (
	"context"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/guard"
)

// queueGrace is the wait for a slot before people see it: a shorter one costs no further frame.
const queueGrace = 200 * time.Millisecond

type place struct {
	leave func() // never nil
	// The message for which the place is beside the slots; 0: it is a slot. stop ends the turn, command is answered
	// before its waiting messages.
	stop, command int64
}

func (p place) takes(e entry) sessions.Alone {
	switch {
	case p.command != 0:
		return sessions.Alone{Event: p.command}
	case p.stop != 0: // beside others, without a request
		return sessions.Alone{}
	}
	return sessions.Alone{Width: e.width}
}

// entry is the way of a turn to its slot.
type entry struct {
	alone  bool   // it takes the oldest message by itself
	width  int    // 0: no suspect, or a dead letter
	joined func() // see [Suspects.Enter]
}

// againError ends a turn after which another one begins at once. A turn beside the slots is not stopped by its message after all, since
// a limit or a suspect leaves it other messages. Or the commands that stopped a turn left other people's messages. These are
// answered by themselves, so that no member can stop them over and over by further messages.
type againError struct {
	by     int64   // messages up to this id give no place beside the slots
	others []int64 // the others' messages; none: the first case
	since  int64   // the newest event of the turns before the stopped one
}

func (e *againError) isOther(one sessions.Event) bool { return slices.Contains(e.others, one.ID) }

func (e *againError) Error() string { return "the turn begins again" }

// enterSlot gives a waiting turn with a /stop after those that were judged before a place beside the slots: it asks no model. A command
// has such a place too while suspects hold the turn up.
func (w waiting) enterSlot(ctx context.Context, l sessions.Lease, before *againError, e entry) (place, error) {
	if e.width == 0 {
		if leave, ok := w.tryEnter(); ok {
			return place{leave: leave}, nil
		}
	}
	wait, end := context.WithCancelCause(ctx)
	q := &queued{Runner: w.Runner, lease: l, ctx: withLease(ctx, l), before: before, suspect: e.width > 0}
	if q.yields() {
		w.running.note(l.Key) // a command may wait already
	}
	over := make(chan place, 1)
	go func() {
		var aside place
		guard.Run(ctx, guard.Session, func() { aside = q.watch(wait, end) })
		over <- aside
	}()
	leave, err := w.enter(wait, l, e)
	end(nil)
	aside := <-over
	switch {
	case aside.stop == 0 && aside.command == 0:
		return place{leave: leave}, err
	case err == nil: // both at once
		aside.leave()
		return place{leave: leave}, nil
	}
	return aside, nil
}

func (w waiting) tryEnter() (leave func(), ok bool) {
	slot, ok := w.slots.TryEnter()
	if !ok {
		return nil, false
	}
	free, ok := w.suspects.TryEnter()
	if !ok {
		slot()
		return nil, false
	}
	return both(slot, free), true
}

// enter has no slot while suspects hold the turn up. A turn without one holds up no suspect while it waits for its slot, except
// after a suspect that ran alone.
func (w waiting) enter(ctx context.Context, l sessions.Lease, e entry) (leave func(), err error) {
	if e.width == 0 {
		slot, err := w.slots.Enter(ctx, llm.WaiterOf(l.Key))
		if err != nil {
			return nil, err
		}
		if free, ok := w.suspects.TryEnter(); ok {
			return both(slot, free), nil
		}
		slot()
	}
	free, err := w.suspects.Enter(ctx, e.width, e.joined)
	if err != nil {
		return nil, err
	}
	slot, err := w.slots.Enter(ctx, llm.WaiterOf(l.Key))
	if err != nil {
		free()
		return nil, err
	}
	return both(slot, free), nil
}

func both(slot, free func()) func() { return func() { slot(); free() } }

type queued struct {
	*Runner
	lease  sessions.Lease
	ctx    context.Context // outlives the wait: a call that shows the turn is not broken off
	before *againError

	suspect bool
	leave   func() // ends the display; nil: not shown
	looks   func() // frees the place among the looking turns; nil: without one
}

// maxLookers bounds the waiting turns that look at intervals: thousands wait after an outage, and each look is a query.
// It equals the number of waiting turns with a card.
const maxLookers = 200

func (q *queued) mayLook() bool {
	if q.looks == nil {
		q.looks, _ = q.lookers.TryEnter()
	}
	return q.looks != nil
}

// watch shows the waiting turn and looks for its stop. A stop ends the wait with a place; the zero value: none.
func (q *queued) watch(wait context.Context, end context.CancelCauseFunc) (aside place) {
	defer logPanic(q.ctx) // no message is marked yet: the turn itself counts the attempt
	defer func() {
		if q.looks != nil {
			q.looks()
		}
		if q.leave != nil {
			q.leave()
		}
	}()
	grace := time.NewTimer(queueGrace)
	defer grace.Stop()
	look := time.NewTicker(stopLook)
	defer look.Stop()
	arrived, late := q.running.arrivals(q.lease.Key), false
	for {
		isNew := false
		select {
		case <-wait.Done():
			return place{}
		case <-grace.C:
			late = true
		case <-arrived:
			isNew = true
		case <-look.C:
		}
		if !isNew && !q.mayLook() {
			continue
		}
		pending, err := q.pending(wait, q.lease.Key)
		if err != nil {
			if wait.Err() == nil {
				zerolog.Ctx(q.ctx).Debug().Err(err).Msg("Failed to look at the messages of a waiting turn")
			}
			continue
		}
		if command := q.nextCommand(pending); command != 0 {
			leave, err := q.asides.Enter(wait, llm.WaiterOf(q.lease.Key))
			if err != nil {
				return place{}
			}
			end(errStopped)
			return place{leave: leave, command: command}
		}
		asked := q.nextAsked(pending)
		if len(asked) == 0 {
			continue
		}
		before := max(asked[0].ID, q.before.by)
		if at := slices.IndexFunc(pending, func(e sessions.Event) bool { return len(endedBy(q.handler, e, asked, before)) > 0 }); at >= 0 {
			leave, err := q.asides.Enter(wait, llm.WaiterOf(q.lease.Key))
			if err != nil { // a slot came first
				return place{}
			}
			end(errStopped)
			return place{leave: leave, stop: pending[at].ID}
		}
		if late && q.leave == nil && len(pending) < stopWindow { // otherwise the first message may not be listed
			q.show(wait, asked)
		}
	}
}

// yields reports whether commands go first: suspects may hold the turn up for long.
func (q *queued) yields() bool { return q.suspect || q.suspects.Excludes() }

// nextCommand is 0 without a command that goes first. One that stops the turn, or is a suspect itself, does not.
func (q *queued) nextCommand(pending []sessions.Event) int64 {
	if !q.yields() {
		return 0
	}
	asked := q.nextAsked(pending)
	for _, e := range slices.Backward(pending) {
		if q.kindOf(e, q.now()) == kindCommand && e.Attempts < sessions.SuspectFrom && (len(asked) == 0 || len(q.handler.Stops(e, asked)) == 0) {
			return e.ID
		}
	}
	return 0
}

// nextAsked is empty if the next turn asks no model. The newest is the first of pending.
func (q *queued) nextAsked(pending []sessions.Event) []sessions.Event {
	var asked []sessions.Event
	for _, e := range slices.Backward(pending) {
		if len(q.before.others) > 0 && !q.before.isOther(e) {
			continue
		}
		if e.Message == nil || q.kindOf(e, q.now()) != kindAsk || len(asked) == q.cfg.MaxMerged || len(asked) > 0 && len(q.handler.Stops(e, asked)) > 0 {
			break
		}
		asked = append(asked, e)
	}
	return asked
}

func (q *queued) show(wait context.Context, asked []sessions.Event) {
	d, ok := q.cfg.Display.(chat.Queuer)
	if !ok || q.isLimited(wait, asked[0]) {
		return
	}
	words := q.views.LanguageWords(asked[:len(asked)-1], asked[len(asked)-1])
	lang := q.languages.Choose(asked[0].Message.ConversationID, words)
	if before, known := q.spoken.Get(q.lease.Key); known {
		if _, isClear := wording.Judge(words); !isClear { // the view is not read yet
			lang = before
		}
	}
	q.leave = d.Queue(q.ctx, shown(q.Runner, q.lease, asked, lang))
}

// isLimited counts nothing. It reports true if the storage does not answer.
func (q *queued) isLimited(ctx context.Context, e sessions.Event) bool {
	limits := q.cfg.Current.For(q.lease.Key).Limits
	if limits == (sessions.Limits{}) || e.Admitted {
		return false
	}
	a := sessions.Askers{Robot: e.Message.RobotCode, People: []sessions.UserID{e.SenderID}}
	if e.Message.ConversationType != sessions.Private {
		a.Group = e.Message.ConversationID
	}
	if a.Group == "" || e.Message.StaffID != "" {
		limits.UnidentifiedTurns = 0
	}
	if !e.IsScheduled() {
		limits.ScheduledTurns = 0
	}
	one, stop := context.WithTimeout(ctx, q.cfg.CommitTimeout)
	defer stop()
	used, err := q.store.Used(one, a)
	full := func(bound int, use sessions.Use) bool { return bound > 0 && use.Count >= bound }
	return err != nil || full(limits.PersonTurns, used.PersonTurns) || full(limits.GroupTurns, used.GroupTurns) ||
		full(limits.PersonTokens, used.PersonTokens) || full(limits.Tokens, used.Tokens) || full(limits.UnidentifiedTurns, used.UnidentifiedTurns) ||
		full(limits.ScheduledTurns, used.ScheduledTurns) || full(sessions.Allowance(limits.GroupTurns, used.GroupOthers), used.GroupPart)
}
