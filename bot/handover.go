package bot

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// noteWaiting never blocks: the sweep repeats a note that a full channel drops.
func (b *Bot) noteWaiting(key sessions.Key) {
	select {
	case b.left <- key:
	default:
	}
}

// handOverWaiting releases leases of sessions with waiting messages, if another replica is alive. It waits for no
// turns of other sessions, and only briefly for the session's flush. It ends with ctx, its flushes with flush.
func (b *Bot) handOverWaiting(ctx, flush context.Context) {
	var flushes errgroup.Group
	flushes.SetLimit(maxShutdownFlushes)
	defer func() { _ = flushes.Wait() }() // its functions return no errors
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-b.left:
			if b.turns.Busy(key) {
				continue // noted again when its turn ends
			}
			if b.outbox.Holds(key) { // the earlier answer is delivered first
				time.AfterFunc(leaveAgain, func() { b.noteWaiting(key) })
				continue
			}
			if b.otherReplicaLives(ctx) {
				flushes.TryGo(func() error { b.flushAndLeave(flush, key); return nil }) // a failed TryGo leaves it for the next note
			}
		}
	}
}

// leaveFlush bounds the wait for a flush while a message waits for an answer. After that the next owner owes the flush.
const leaveFlush = 2 * time.Second

// flushAndLeave hands a session over whatever the result of its flush. If the unflushed sessions can't be listed, the
// next note repeats it.
func (b *Bot) flushAndLeave(ctx context.Context, key sessions.Key) {
	look, stop := context.WithTimeout(ctx, leaveFlush)
	defer stop()
	active, err := b.memory.Flushes.Unflushed(look, b.shared.Leases.Owner())
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
	if ctx.Err() == nil { // otherwise released with the others
		b.handOver(ctx, key) // idempotent if released before
	}
}

// leaveAgain is the pause before another look at a session with a reply in delivery.
const leaveAgain = 10 * time.Millisecond

// otherReplicaLives reports whether another replica is alive and not draining, or may be.
func (b *Bot) otherReplicaLives(ctx context.Context) bool {
	if b.cfg.Elector == nil {
		return true
	}
	one, stop := context.WithTimeout(ctx, b.shared.CommitTimeout)
	defer stop()
	l, err := b.cfg.Elector.Leader(one)
	return err == nil && l.Replica != "" && l.Replica != b.shared.Leases.Owner()
}
