package bot

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"ebb/bot/llm"
	"ebb/memory"
	"ebb/sessions"
)

// leave notes a session that has messages waiting, and no turn, while this replica stops. It never blocks: the sweep comes
// back to what is not noted.
func (b *Bot) leave(key sessions.Key) {
	select {
	case b.left <- key:
	default:
	}
}

// handOvers gives up the leases of sessions in which somebody waits for an answer, if another replica is there to give it.
// Other sessions' turns are not waited for, and the session's own flush only for a moment. It ends with ctx, the flushes
// that it began with flush.
func (b *Bot) handOvers(ctx, flush context.Context) {
	var flushes errgroup.Group
	flushes.SetLimit(maxShutdownFlushes)
	defer func() { _ = flushes.Wait() }() // its functions return no errors
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-b.left:
			if b.turns.Busy(key) {
				continue // it is noted again when its turn ends
			}
			if b.outbox.Holds(key) { // the answer before comes first
				time.AfterFunc(leaveAgain, func() { b.leave(key) })
				continue
			}
			if b.others(ctx) {
				flushes.TryGo(func() error { b.flushAndLeave(flush, key); return nil }) // else it is noted again
			}
		}
	}
}

// leaveFlush is how long somebody who waits for an answer waits for the session's flush before: the next owner owes it else.
const leaveFlush = 2 * time.Second

// flushAndLeave flushes a session, or waits for the flush that has begun, and hands it over, whatever came of that. Where the
// storage does not tell what is unsaved, it is tried again while somebody waits.
func (b *Bot) flushAndLeave(ctx context.Context, key sessions.Key) {
	look, stop := context.WithTimeout(ctx, leaveFlush)
	defer stop()
	active, err := b.memory.Unflushed(look, b.leases.Owner())
	if err != nil {
		return
	}
	one, first := b.last.begin(ctx, key)
	defer time.AfterFunc(leaveFlush, func() { one.cut(llm.ErrStop) }).Stop()
	if first {
		defer one.end()
		if at := slices.IndexFunc(active, func(u memory.UnflushedSession) bool { return u.Key == key }); at >= 0 {
			b.flushLast(ctx, one, active[at])
		} else {
			b.handOver(ctx, key)
		}
		return
	}
	<-one.done
	if ctx.Err() == nil { // else it goes with the others
		b.handOver(ctx, key) // no more than a word where it went already
	}
}

// leaveAgain is how soon a session is looked at again whose reply is on its way.
const leaveAgain = 10 * time.Millisecond

// others reports whether another replica lives that does not stop as well, or may.
func (b *Bot) others(ctx context.Context) bool {
	if b.cfg.Elector == nil {
		return true
	}
	one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
	defer stop()
	l, err := b.cfg.Elector.Leader(one)
	return err == nil && l.Replica != "" && l.Replica != b.leases.Owner()
}
