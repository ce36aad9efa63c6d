package bot

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/serial"
)

// handover gives sessions with waiting messages to other replicas at a stop.
type handover struct {
	shared  *parts.Shared
	elector sessions.Elector
	turns   *serial.Mailboxes
	outbox  *outbox.Outbox
	last    *lastFlush
	left    chan sessions.Key // waiting sessions that this replica no longer starts
}

// noteWaiting never blocks: the sweep repeats a note that a full channel drops.
func (h *handover) noteWaiting(key sessions.Key) {
	select {
	case h.left <- key:
	default:
	}
}

// handOverWaiting releases leases of sessions with waiting messages, if another replica is alive. It waits for no
// turns of other sessions, and only briefly for the session's flush. It ends with ctx, its flushes with flush.
func (h *handover) handOverWaiting(ctx, flush context.Context) {
	var flushes errgroup.Group
	flushes.SetLimit(maxShutdownFlushes)
	defer func() { _ = flushes.Wait() }() // its functions return no errors
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-h.left:
			if h.turns.Busy(key) {
				continue // noted again when its turn ends
			}
			if h.outbox.Holds(key) { // the earlier answer is delivered first
				time.AfterFunc(leaveAgain, func() { h.noteWaiting(key) })
				continue
			}
			if h.otherReplicaLives(ctx) {
				flushes.TryGo(func() error { h.flushAndLeave(flush, key); return nil }) // a failed TryGo leaves it for the next note
			}
		}
	}
}

// leaveFlush bounds the wait for a flush while a message waits for an answer. After that the next owner owes the flush.
const leaveFlush = 2 * time.Second

// flushAndLeave hands a session over whatever the result of its flush. If the unflushed sessions can't be listed, the
// next note repeats it.
func (h *handover) flushAndLeave(ctx context.Context, key sessions.Key) {
	look, stop := context.WithTimeout(ctx, leaveFlush)
	defer stop()
	active, err := h.last.flushes.Unflushed(look, h.shared.Leases.Owner())
	if err != nil {
		return
	}
	one, first := h.last.begin(ctx, key)
	defer time.AfterFunc(leaveFlush, func() { one.cut(llm.ErrStop) }).Stop()
	if first {
		defer one.end()
		if at := slices.IndexFunc(active, func(u memory.UnflushedSession) bool { return u.Key == key }); at >= 0 {
			h.last.flushOne(ctx, one, active[at])
		} else {
			h.last.handOver(ctx, key)
		}
		return
	}
	<-one.done
	if ctx.Err() == nil { // otherwise released with the others
		h.last.handOver(ctx, key) // idempotent if released before
	}
}

// leaveAgain is the pause before another look at a session with a reply in delivery.
const leaveAgain = 10 * time.Millisecond

// otherReplicaLives reports whether another replica is alive and not draining, or may be.
func (h *handover) otherReplicaLives(ctx context.Context) bool {
	one, stop := context.WithTimeout(ctx, h.shared.CommitTimeout)
	defer stop()
	l, err := h.elector.Leader(one)
	return err == nil && l.Replica != "" && l.Replica != h.shared.Leases.Owner()
}
