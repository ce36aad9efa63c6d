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

// enter gives a waiting turn with a /stop after those that were judged before a place beside the slots: it asks no model. A command
// has such a place too while suspects hold the turn up.
func (s *Slots) enter(ctx context.Context, l sessions.Lease, rest Rest, e entry) (place, error) {
	if e.width == 0 {
		if leave, ok := s.tryEnter(); ok {
			return place{leave: leave}, nil
		}
	}
	wait, end := context.WithCancelCause(ctx)
	q := &queued{slots: s, lease: l, ctx: WithLease(ctx, l), rest: rest, suspect: e.width > 0}
	if q.yields() {
		s.Running.Note(l.Key) // a command may wait already
	}
	over := make(chan place, 1)
	go func() {
		var aside place
		guard.Run(ctx, guard.Session, func() { aside = q.watch(wait, end) })
		over <- aside
	}()
	leave, err := s.await(wait, l, e)
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

func (s *Slots) tryEnter() (leave func(), ok bool) {
	slot, ok := s.free.TryEnter()
	if !ok {
		return nil, false
	}
	free, ok := s.suspects.TryEnter()
	if !ok {
		slot()
		return nil, false
	}
	return both(slot, free), true
}

// await has no slot while suspects hold the turn up. A turn without one holds up no suspect while it waits for its slot, except
// after a suspect that ran alone.
func (s *Slots) await(ctx context.Context, l sessions.Lease, e entry) (leave func(), err error) {
	if e.width == 0 {
		slot, err := s.free.Enter(ctx, gate.WaiterOf(l.Key))
		if err != nil {
			return nil, err
		}
		if free, ok := s.suspects.TryEnter(); ok {
			return both(slot, free), nil
		}
		slot()
	}
	free, err := s.suspects.Enter(ctx, e.width, e.joined)
	if err != nil {
		return nil, err
	}
	slot, err := s.free.Enter(ctx, gate.WaiterOf(l.Key))
	if err != nil {
		free()
		return nil, err
	}
	return both(slot, free), nil
}

func both(slot, free func()) func() { return func() { slot(); free() } }

// queued is a turn that waits for its place.
type queued struct {
	slots   *Slots
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

func (q *queued) mayLook() bool {
	if q.looks == nil {
		q.looks, _ = q.slots.lookers.TryEnter()
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
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	arrived, late := q.slots.Running.arrivals(q.lease.Key), false
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
		pending, err := q.slots.Inbox.newest(wait, q.lease.Key)
		if err != nil {
			if wait.Err() == nil {
				zerolog.Ctx(q.ctx).Debug().Err(err).Msg("Failed to look at the messages of a waiting turn")
			}
			continue
		}
		if command := q.nextCommand(pending); command != 0 {
			leave, err := q.slots.asides.Enter(wait, gate.WaiterOf(q.lease.Key))
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
		since := max(asked[0].ID, q.rest.By)
		if at := slices.IndexFunc(pending, func(e sessions.Event) bool { return len(q.slots.Inbox.EndedBy(e, asked, since)) > 0 }); at >= 0 {
			leave, err := q.slots.asides.Enter(wait, gate.WaiterOf(q.lease.Key))
			if err != nil { // a slot came first
				return place{}
			}
			end(errStopped)
			return place{leave: leave, stop: pending[at].ID}
		}
		if late && q.leave == nil && len(pending) < lookWindow { // otherwise the first message may not be listed
			q.show(wait, asked)
		}
	}
}

// yields reports whether commands go first: suspects may hold the turn up for long.
func (q *queued) yields() bool { return q.suspect || q.slots.suspects.Excludes() }

// nextCommand is 0 without a command that goes first. One that stops the turn, or is a suspect itself, does not.
func (q *queued) nextCommand(pending []sessions.Event) int64 {
	if !q.yields() {
		return 0
	}
	asked := q.nextAsked(pending)
	for _, e := range slices.Backward(pending) {
		if q.kindOf(e) == choice.Command && e.Attempts < sessions.SuspectFrom && (len(asked) == 0 || len(q.slots.cfg.Commands.Stops(e, asked)) == 0) {
			return e.ID
		}
	}
	return 0
}

// nextAsked is empty if the next turn asks no model. The newest is the first of pending.
func (q *queued) nextAsked(pending []sessions.Event) []sessions.Event {
	var asked []sessions.Event
	for _, e := range slices.Backward(pending) {
		if len(q.rest.Others) > 0 && !q.rest.Has(e) {
			continue
		}
		if e.Message == nil || q.kindOf(e) != choice.Ask || len(asked) == q.slots.cfg.MaxMerged || len(asked) > 0 && len(q.slots.cfg.Commands.Stops(e, asked)) > 0 {
			break
		}
		asked = append(asked, e)
	}
	return asked
}

func (q *queued) kindOf(e sessions.Event) choice.Kind {
	return q.slots.cfg.Chooser.Kinds.KindOf(e, q.slots.cfg.Shared.Now())
}

func (q *queued) show(wait context.Context, asked []sessions.Event) {
	s := q.slots
	d, ok := s.cfg.Display.(chat.Queuer)
	if !ok || s.cfg.Chooser.Limits.Exceeds(wait, q.lease.Key, asked[0]) {
		return
	}
	q.leave = d.Queue(q.ctx, s.Screen.shown(q.lease, asked, s.cfg.Chooser.WaitingLanguage(q.lease.Key, asked)))
}
