package slot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/bot/turn/choice"
	"ebb/bot/wording"
	"ebb/sessions"
)

// lookInterval is for a /stop whose wake-up was lost.
const lookInterval = 5 * time.Second

var errStopped = errors.New("turn was stopped by a member")

// stopError has the commands that stopped a turn.
type stopError struct{ by []sessions.Event }

func (e *stopError) Error() string { return errStopped.Error() }

func (e *stopError) Unwrap() error { return errStopped }

// IsStopped reports whether a member stopped the turn of a context.
func IsStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errStopped) }

// HasLostLease reports whether the lease of a context's turn ended.
func HasLostLease(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), sessions.ErrLeaseLost)
}

// Watch looks for the ends of running turns.
type Watch struct {
	shared   *parts.Shared
	cards    Cards
	notices  Notices
	outbox   Outbox
	inbox    Inbox
	screen   Screen
	running  *Running
	busyNote time.Duration // a longer turn is announced once; 0: never
}

// ErrTurnTime ends the work of a turn at its deadline.
var ErrTurnTime = fmt.Errorf("turn took too long: %w", context.DeadlineExceeded)

// Attended is the work of a turn that is attended.
type Attended struct {
	// Work ends at the turn's deadline, at a /stop, see [IsStopped], and with ErrLeaseLost when an erasure or another replica ended the
	// lease's term.
	Work context.Context

	turn, bounded context.Context // parents of Work: the turn's, and the one with the deadline
	leave         func()
}

// End is why the work of a turn ended. Its zero value: it came to its own end.
type End struct {
	Lost     error            // the process stops, or the lease is lost: the messages wait for another turn
	Stops    []sessions.Event // commands that stopped it
	TimedOut bool             // at its deadline
}

// Leave ends the work, and returns why it ended. It may be called again.
func (a Attended) Leave() End {
	a.leave()
	e := End{TimedOut: context.Cause(a.bounded) == ErrTurnTime} //nolint:errorlint // the cause is that very value
	switch stopped, ok := errors.AsType[*stopError](context.Cause(a.Work)); {
	case a.turn.Err() != nil:
		e.Lost = context.Cause(a.turn)
	case HasLostLease(a.Work):
		e.Lost = context.Cause(a.Work)
	case ok:
		e.Stops = stopped.by
	}
	return e
}

// Attend looks for the end of a turn's work while it goes on, within a limit. It notifies members once of a long turn.
func (w Watch) Attend(ctx context.Context, limit time.Duration, made choice.Choice, live chat.Live) Attended {
	bounded, expire := context.WithTimeoutCause(ctx, limit, ErrTurnTime)
	work, cancel := context.WithCancelCause(bounded)
	t := watched{
		watch: w, lease: made.Lease, asked: slices.Clone(made.Asked), since: made.Since, lang: made.Lang, arrived: w.running.arrivals(made.Lease.Key), live: live,
	}
	if len(made.Stops) > 0 {
		cancel(&stopError{made.Stops})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer logPanic(ctx)
		t.run(work, cancel)
	}()
	return Attended{Work: work, turn: ctx, bounded: bounded, leave: func() {
		cancel(nil)
		<-done
		expire()
	}}
}

// watched is a running turn.
type watched struct {
	watch   Watch
	lease   sessions.Lease
	asked   []sessions.Event
	since   int64 // see [Since]
	lang    string
	arrived <-chan struct{}
	live    chat.Live // nil: not shown
}

func (t *watched) run(ctx context.Context, stop context.CancelCauseFunc) {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	var long <-chan time.Time
	if t.watch.busyNote > 0 {
		note := time.NewTimer(t.watch.busyNote)
		defer note.Stop()
		long = note.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-long:
			if t.live == nil || !t.live.Visible() {
				t.notifyBusy(ctx)
			}
			continue
		case <-t.arrived:
		case <-look.C:
		}
		pending, err := t.watch.inbox.newest(ctx, t.lease.Key)
		if err != nil {
			if ctx.Err() == nil {
				zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to look for a stop of the turn")
			}
			continue
		}
		if t.hasEnded(ctx, pending) {
			stop(sessions.ErrLeaseLost)
			return
		}
		if by := t.watch.inbox.stopsAmong(pending, t.asked, t.since); len(by) > 0 {
			stop(&stopError{by})
			return
		}
		t.watch.screen.acknowledge(ctx, t.lease, pending, t.asked)
	}
}

// hasEnded reports whether the storage has another lease. A session whose row an outsider deleted comes back under the turn's lease if
// its messages still wait.
func (t *watched) hasEnded(ctx context.Context, pending []sessions.Event) bool {
	one, stop := context.WithTimeout(ctx, t.watch.shared.CommitTimeout)
	defer stop()
	l, err := t.watch.cards.LeaseOf(one, t.lease.Key)
	switch {
	case err == nil:
		t.watch.shared.Leases.Learn(l)
		return l != t.lease
	case errors.Is(err, sessions.ErrNotFound):
		return len(pending) < lookWindow && !slices.ContainsFunc(pending, func(e sessions.Event) bool { return e.ID == t.asked[0].ID })
	}
	return false
}

func (t *watched) notifyBusy(ctx context.Context) {
	to := chat.TargetOf(t.asked)
	to.Mentions = nil
	one, stop := context.WithTimeout(ctx, t.watch.shared.CommitTimeout)
	defer stop()
	outs, err := t.watch.notices.Announce(one, t.lease, sessions.Reply{
		Target: to, Text: wording.Say(wording.StillBusy, t.lang), Nonce: chat.NoticeKey(t.lease.Key, t.asked[0]),
	})
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the notice of a long turn")
		t.watch.outbox.Invalidate(t.lease.Key)
		return
	}
	t.watch.outbox.Send(ctx, t.lease, outs, func() {})
}
