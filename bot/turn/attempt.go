package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// errPanic stands for a panic as the end of a turn.
var errPanic = errors.New("panic")

// countsAsAttempt reports whether the end of a turn counts as an attempt at its messages: a panic, or data that the
// storage refuses. A lost lease, a stop and a storage failure do not count. The storage counts crashes itself, see
// [sessions.Store.Begin]. A model failure is answered and ends no turn.
func countsAsAttempt(end error) bool {
	return errors.Is(end, errPanic) || errors.Is(end, sessions.ErrRefused)
}

// attempt runs a turn, and abandons it in the storage if it ends without a commit.
func (r *Runner) attempt(ctx context.Context, l sessions.Lease, view sessions.View) (more bool, err error) {
	if len(view.Pending) == 0 {
		return false, nil
	}
	taken, end := view.Pending, errPanic
	defer func() { // also during a panic
		if end != nil {
			err = errors.Join(err, r.abandon(ctx, l, taken, end))
		}
	}()
	t := r.OpenTurn(l, view)
	taken = t.Asked
	more, err = r.answerAndCommit(ctx, t)
	end = err
	return more, err
}

// abandon records that a turn ended without a commit, and counts the attempt if it counts. It waits while the storage
// is unavailable.
func (r *Runner) abandon(ctx context.Context, l sessions.Lease, taken []sessions.Event, end error) error {
	var guilty []int64
	for _, e := range taken {
		if countsAsAttempt(end) {
			guilty = append(guilty, e.ID)
		}
	}
	err := r.persist(ctx, "Turn not abandoned, trying again", func(one context.Context) error {
		return r.store.Abandon(one, l, guilty)
	})
	if err != nil {
		return fmt.Errorf("abandon turn of session %s: %w", l.Key, err)
	}
	return nil
}

// begin waits for a slot and reads the session. A suspect also waits until no other suspect runs; nothing is marked
// before. leave frees the slots, and is never nil.
func (r *Runner) begin(ctx context.Context, l sessions.Lease) (v sessions.View, leave func(), err error) {
	v, leave, err = r.beginWith(ctx, l, r.store.Begin)
	if err != nil || v.Suspect == 0 {
		return v, leave, err
	}
	leave()
	free, err := r.suspects.Enter(ctx, v.Suspect)
	if err != nil {
		return v, func() {}, err
	}
	v, place, err := r.beginWith(ctx, l, r.store.BeginAlone)
	if v.Suspect == 1 {
		time.AfterFunc(SuspectAlone, free)
	}
	return v, func() { place(); free() }, err
}

func (r *Runner) beginWith(
	ctx context.Context, l sessions.Lease, open func(context.Context, sessions.Lease, int) (sessions.View, error),
) (v sessions.View, leave func(), err error) {
	if leave, err = r.slots.Enter(ctx, llm.WaiterOf(l.Key)); err != nil {
		return v, func() {}, llm.ErrStop
	}
	if !r.leases.Trusted() { // the wait may have been long
		return v, leave, ErrHeartbeat
	}
	// The timeout frees the slot when a statement hangs.
	one, stop := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer stop()
	v, err = open(one, l, r.cfg.MaxMerged)
	return v, leave, err
}
