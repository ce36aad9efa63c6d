package slot

import (
	"context"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/gate"
	"ebb/bot/turn/choice"
	"ebb/sessions"
	"ebb/sessions/guard"
)

// queueGrace is the wait for a slot before people see it: a shorter one costs no further frame.
const queueGrace = 200 * time.Millisecond

// queue lets waiting turns into slots, in turn by conversation.
type queue struct {
	free     *gate.FairSemaphore // each turn holds a view
	asides   *gate.FairSemaphore // turns without a slot, which were stopped while they waited for one
	lookers  *gate.FairSemaphore // waiting turns that look for messages at intervals
	suspects *Suspects

	running   *Running
	inbox     Inbox
	screen    Screen
	commands  choice.Commands
	chooser   *choice.Chooser
	now       func() time.Time
	maxMerged int
}

// WithLease adds the session and the term to the log's fields.
func WithLease(ctx context.Context, l sessions.Lease) context.Context {
	log := zerolog.Ctx(ctx).With().EmbedObject(l.Key).Int64("term", l.Term).Logger()
	return log.WithContext(ctx)
}

// Rest is the messages for which a turn begins at once after another one. A turn beside the slots is not stopped by its message after all,
// since a limit or a suspect leaves it other messages. Or the commands that stopped a turn left other people's messages. These are
// answered by themselves, so that no member can stop them over and over by further messages. The zero value is all messages.
type Rest struct {
	By     int64   // messages up to this id give no place beside the slots
	Others []int64 // the others' messages; none: the first case
	Since  int64   // see [Since], of the turn that left them
}

// Has reports whether a message is one of the others'.
func (r Rest) Has(one sessions.Event) bool { return slices.Contains(r.Others, one.ID) }

// admission lets a turn begin: it has a slot, or a place beside the slots.
type admission struct {
	release func() // never nil
	// The message for which the place is beside the slots; 0: it is a slot. stop ends the turn, command is answered
	// before its waiting messages.
	stop, command int64
}

func (p admission) takes(e entry) sessions.Alone {
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

// enter gives a waiting turn with a /stop after those that were judged before a place beside the slots: it asks no model. A command
// has such a place too while suspects hold the turn up.
func (q queue) enter(ctx context.Context, l sessions.Lease, rest Rest, e entry) (admission, error) {
	if e.width == 0 {
		if leave, ok := q.tryEnter(); ok {
			return admission{release: leave}, nil
		}
	}
	wait, end := context.WithCancelCause(ctx)
	w := &waitingTurn{queue: q, lease: l, ctx: WithLease(ctx, l), rest: rest, suspect: e.width > 0}
	if w.yields() {
		q.running.Note(l.Key) // a command may wait already
	}
	over := make(chan admission, 1)
	go func() {
		var aside admission
		guard.Run(ctx, guard.Session, func() { aside = w.watchCommands(wait, end) })
		over <- aside
	}()
	leave, err := q.await(wait, l, e)
	end(nil)
	aside := <-over
	switch {
	case aside.stop == 0 && aside.command == 0:
		return admission{release: leave}, err
	case err == nil: // both at once
		aside.release()
		return admission{release: leave}, nil
	}
	return aside, nil
}

func (q queue) tryEnter() (leave func(), ok bool) {
	slot, ok := q.free.TryEnter()
	if !ok {
		return nil, false
	}
	free, ok := q.suspects.TryEnter()
	if !ok {
		slot()
		return nil, false
	}
	return both(slot, free), true
}

// await has no slot while suspects hold the turn up. A turn without one holds up no suspect while it waits for its slot, except
// after a suspect that ran alone.
func (q queue) await(ctx context.Context, l sessions.Lease, e entry) (leave func(), err error) {
	if e.width == 0 {
		slot, err := q.free.Enter(ctx, gate.WaiterOf(l.Key))
		if err != nil {
			return nil, err
		}
		if free, ok := q.suspects.TryEnter(); ok {
			return both(slot, free), nil
		}
		slot()
	}
	free, err := q.suspects.Enter(ctx, e.width, e.joined)
	if err != nil {
		return nil, err
	}
	slot, err := q.free.Enter(ctx, gate.WaiterOf(l.Key))
	if err != nil {
		free()
		return nil, err
	}
	return both(slot, free), nil
}

func both(slot, free func()) func() { return func() { slot(); free() } }

// waitingTurn is a turn that waits for its slot.
type waitingTurn struct {
	queue   queue
	lease   sessions.Lease
	ctx     context.Context // outlives the wait: a call that shows the turn is not broken off
	rest    Rest
	suspect bool
	leave   func() // ends the display; nil: not shown
	looks   func() // frees the place among the looking turns; nil: without one
}

// maxLookers bounds the waiting turns that look at intervals: thousands wait after an outage, and each look is a query.
// It equals the number of waiting turns with a card.
const maxLookers = 200

func (w *waitingTurn) mayLook() bool {
	if w.looks == nil {
		w.looks, _ = w.queue.lookers.TryEnter()
	}
	return w.looks != nil
}

// watchCommands shows the waiting turn and looks for its stop. A stop ends the wait with a place; the zero value: none.
func (w *waitingTurn) watchCommands(wait context.Context, end context.CancelCauseFunc) (aside admission) {
	defer logPanic(w.ctx) // no message is marked yet: the turn itself counts the attempt
	defer func() {
		if w.looks != nil {
			w.looks()
		}
		if w.leave != nil {
			w.leave()
		}
	}()
	grace := time.NewTimer(queueGrace)
	defer grace.Stop()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	arrived, late := w.queue.running.arrivals(w.lease.Key), false
	for {
		isNew := false
		select {
		case <-wait.Done():
			return admission{}
		case <-grace.C:
			late = true
		case <-arrived:
			isNew = true
		case <-look.C:
		}
		if !isNew && !w.mayLook() {
			continue
		}
		pending, err := w.queue.inbox.newest(wait, w.lease.Key)
		if err != nil {
			if wait.Err() == nil {
				zerolog.Ctx(w.ctx).Debug().Err(err).Msg("Failed to look at the messages of a waiting turn")
			}
			continue
		}
		if command := w.nextCommand(pending); command != 0 {
			leave, err := w.queue.asides.Enter(wait, gate.WaiterOf(w.lease.Key))
			if err != nil {
				return admission{}
			}
			end(errStopped)
			return admission{release: leave, command: command}
		}
		asked := w.nextAsked(pending)
		if len(asked) == 0 {
			continue
		}
		since := max(asked[0].ID, w.rest.By)
		if at := slices.IndexFunc(pending, func(e sessions.Event) bool { return len(w.queue.inbox.EndedBy(e, asked, since)) > 0 }); at >= 0 {
			leave, err := w.queue.asides.Enter(wait, gate.WaiterOf(w.lease.Key))
			if err != nil { // a slot came first
				return admission{}
			}
			end(errStopped)
			return admission{release: leave, stop: pending[at].ID}
		}
		if late && w.leave == nil && len(pending) < lookWindow { // otherwise the first message may not be listed
			w.showAsked(wait, asked)
		}
	}
}

// yields reports whether commands go first: suspects may hold the turn up for long.
func (w *waitingTurn) yields() bool { return w.suspect || w.queue.suspects.Excludes() }

// nextCommand is 0 without a command that goes first. One that stops the turn, or is a suspect itself, does not.
func (w *waitingTurn) nextCommand(pending []sessions.Event) int64 {
	if !w.yields() {
		return 0
	}
	asked := w.nextAsked(pending)
	for _, e := range slices.Backward(pending) {
		if w.kindOf(e) == choice.Command && e.Attempts < sessions.SuspectFrom && (len(asked) == 0 || len(w.queue.commands.Stops(e, asked)) == 0) {
			return e.ID
		}
	}
	return 0
}

// nextAsked is empty if the next turn asks no model. The newest is the first of pending.
func (w *waitingTurn) nextAsked(pending []sessions.Event) []sessions.Event {
	var asked []sessions.Event
	for _, e := range slices.Backward(pending) {
		if len(w.rest.Others) > 0 && !w.rest.Has(e) {
			continue
		}
		if e.Message == nil || w.kindOf(e) != choice.Ask || len(asked) == w.queue.maxMerged || len(asked) > 0 && len(w.queue.commands.Stops(e, asked)) > 0 {
			break
		}
		asked = append(asked, e)
	}
	return asked
}

func (w *waitingTurn) kindOf(e sessions.Event) choice.Kind {
	return w.queue.chooser.Kinds.KindOf(e, w.queue.now())
}

func (w *waitingTurn) showAsked(wait context.Context, asked []sessions.Event) {
	d, ok := w.queue.screen.display.(chat.Queuer)
	if !ok || w.queue.chooser.Limits.Exceeds(wait, w.lease.Key, asked[0]) {
		return
	}
	w.leave = d.Queue(w.ctx, w.queue.screen.shown(w.lease, asked, w.queue.chooser.WaitingLanguage(w.lease.Key, asked)))
}
