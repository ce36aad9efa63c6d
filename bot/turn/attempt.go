package turn

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/sessions"
	"ebb/sessions/guard"
)

var errPanic = errors.New("panic")

// countsAsAttempt excludes lost leases, stops and storage failures. The storage counts crashes itself, see
// [sessions.Store.Begin].
func countsAsAttempt(end error) bool {
	return errors.Is(end, errPanic) || errors.Is(end, sessions.ErrRefused)
}

// attempt abandons a turn in the storage if it ends without a commit. aside is the message that gave it a place
// beside the slots; 0: it has a slot.
func (r opening) attempt(ctx context.Context, l sessions.Lease, view sessions.View, aside int64) (more bool, err error) {
	if len(view.Pending) == 0 {
		return false, nil
	}
	taken, end := view.Pending, errPanic
	defer func() { // also during a panic
		if end != nil {
			err = errors.Join(err, r.abandon(ctx, l, taken, end))
		}
	}()
	t := r.openTurn(l, view, moveFirst(view.Pending, r.before.isOther))
	if r.before.isOther(view.Pending[0]) {
		t.before = r.before.since
	}
	if end = r.admit(ctx, t); end != nil {
		return false, end
	}
	end = errPanic
	if t.plan.Kind == kindAsk {
		t.stops = waiting{r.Runner}.stops(ctx, t)
		if aside != 0 && len(t.stops) == 0 {
			end = &againError{by: aside, others: r.before.others, since: r.before.since}
			return false, end
		}
	}
	taken = t.Asked
	more, err = r.answerAndCommit(ctx, t)
	end = err
	if err == nil && len(t.others) > 0 {
		again := &againError{since: t.before}
		for _, e := range t.others {
			again.others = append(again.others, e.ID)
		}
		return false, again
	}
	return more, err
}

func (r opening) abandon(ctx context.Context, l sessions.Lease, taken []sessions.Event, end error) error {
	var guilty []int64
	for _, e := range taken {
		if countsAsAttempt(end) {
			guilty = append(guilty, e.ID)
		}
	}
	return r.persist(ctx, "Turn not abandoned, trying again", func(one context.Context) error {
		return r.store.Abandon(one, l, guilty)
	})
}

// begin lets a suspect wait for its place among suspects; nothing is marked before. Commands that come meanwhile are
// taken first.
func (r opening) begin(ctx context.Context, l sessions.Lease) (_ sessions.Lease, v sessions.View, p place, err error) {
	l, v, p, err = r.beginWith(ctx, l, entry{})
	if err != nil || v.Suspect == 0 {
		return l, v, p, err
	}
	p.leave()
	e := entry{alone: true}
	if v.Suspect < maxBroken {
		one, stop := context.WithTimeout(ctx, r.cfg.CommitTimeout)
		n, err := r.store.Suspects(one)
		stop()
		if err != nil {
			return l, v, place{leave: func() {}}, err
		}
		e.width = widthAmong(n, v)
	}
	c := joining{begun: make(chan struct{})}
	defer close(c.begun)
	if v.Width != sessions.Joined { // after a death beside others it runs alone to its end
		e.joined = func() { r.markJoined(ctx, &c) }
	}
	l, v, p, err = r.beginWith(ctx, l, e)
	if c.lease = l; err == nil && len(v.Pending) == 1 {
		c.event = v.Pending[0].ID
	}
	// The attempts may be panics, and data that the storage refused.
	if err == nil && e.width > 0 && v.Suspect > 0 && p.command == 0 && p.stop == 0 {
		zerolog.Ctx(ctx).Warn().EmbedObject(l.Key).Int("attempts", v.Suspect).Int("width", e.width).Msg("Message of broken turns was taken alone")
	}
	return l, v, p, err
}

// joining is a suspect that may be joined by other turns.
type joining struct {
	begun chan struct{} // closed when the fields are set
	lease sessions.Lease
	event int64 // 0: no message is marked
}

// markJoined marks the message of a suspect before others run next to it, since a death may be theirs then.
func (r opening) markJoined(ctx context.Context, c *joining) {
	defer logPanic(ctx)
	<-c.begun
	if c.event == 0 {
		return
	}
	err := r.persist(ctx, "Suspect not marked as one beside others, trying again", func(one context.Context) error {
		_, err := r.store.BeginAlone(one, c.lease, 1, sessions.Alone{Event: c.event, Width: sessions.Joined})
		return err
	})
	if err != nil && !sessions.IsFinal(err) {
		zerolog.Ctx(ctx).Warn().EmbedObject(c.lease.Key).Err(err).Msg("Suspect not marked as one beside others")
	}
}

// widthAmong is half of n suspects, or less if deaths narrowed them down further.
func widthAmong(n int, v sessions.View) int {
	width := max(1, (n+1)/2)
	if v.Width == sessions.Joined {
		return 1
	}
	if v.Width > 0 {
		width = min(width, v.Width)
	}
	return width
}

// leaseTries bounds the leases of one turn; a session that loses more passes its slot on.
const leaseTries = 3

// beginWith takes a lease again that an erasure took, and keeps the slot. Otherwise frequent erasures would starve the
// turn, and no mark would count them.
func (r opening) beginWith(ctx context.Context, l sessions.Lease, e entry) (_ sessions.Lease, v sessions.View, p place, err error) {
	if p, err = (waiting{r.Runner}).enterSlot(ctx, l, r.before, e); err != nil {
		return l, v, place{leave: func() {}}, llm.ErrStop
	}
	if !r.leases.Trusted() { // the wait may have been long
		return l, v, p, ErrHeartbeat
	}
	guard.GrowStack()
	// The timeout frees the slot when a statement hangs.
	one, stop := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer stop()
	for tries := 1; ; tries++ {
		if e.alone || p.command != 0 {
			v, err = r.store.BeginAlone(one, l, r.cfg.MaxMerged, p.takes(e))
		} else {
			v, err = r.store.Begin(one, l, r.cfg.MaxMerged)
		}
		if !errors.Is(err, sessions.ErrLeaseLost) || tries == leaseTries {
			return l, v, p, err
		}
		_ = r.leases.Check(l.Key, err)
		if l, err = r.lease(one, l.Key); err != nil {
			return l, v, p, err
		}
	}
}

func (r *Runner) lease(ctx context.Context, key sessions.Key) (sessions.Lease, error) {
	l, err := r.leases.Get(ctx, key)
	if err != nil {
		return l, err
	}
	return l, r.outbox.Resume(withLease(ctx, l), l)
}

func withLease(ctx context.Context, l sessions.Lease) context.Context {
	log := zerolog.Ctx(ctx).With().EmbedObject(l.Key).Int64("term", l.Term).Logger()
	return log.WithContext(ctx)
}
