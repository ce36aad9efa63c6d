// Package stream keeps a connection to DingTalk's stream gateway, stores the messages of its frames, and answers the presses of buttons.
package stream

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/frame"
	"ebb/sessions"
	"ebb/sessions/retry"
)

type end int

const (
	stopped  end = iota // Run ends
	lost                // the connection is gone
	farewell            // DingTalk asked to leave
	silent              // no data for so long that the connection may be dead
)

// Stream receives the messages of an application. Its methods may be called from any goroutine; Run only once.
type Stream struct {
	app    App
	timing timing

	current  atomic.Pointer[link]
	failures atomic.Int64 // tries to open a connection that failed in a row
	counters counters
	arrivals arrivals
	held     *semaphore.Weighted
	clicks   clicks
}

// Tests shorten these durations.
type timing struct {
	accept time.Duration // from a frame's arrival to its last timely ack
	open   time.Duration // to open one connection
	pauses retry.Pauses  // after failures
	young  time.Duration // A connection that ends before this age ends early.
	poll   time.Duration // interval of the liveness check
	grace  time.Duration // time from DingTalk's farewell to its close
	quiet  time.Duration // silence before a connection is replaced
	drain  time.Duration // time for running accepts at the end of Run
}

// DingTalk waits 3 s for an ack and 10 s after `disconnect`; these values stay below.
func defaultTiming() timing {
	return timing{
		accept: 2500 * time.Millisecond, open: 10 * time.Second, pauses: retry.Pauses{First: time.Second, Max: time.Minute, Jitter: 0.25},
		young: 5 * time.Second, poll: 100 * time.Millisecond, grace: 9 * time.Second, quiet: 10 * time.Minute,
		drain: 3 * time.Second,
	}
}

// New returns a stream without a connection.
func New(app App) *Stream {
	silenceSDK()
	app.KeepAlive = max(cmp.Or(app.KeepAlive, 20*time.Second), 3*time.Second)
	return &Stream{
		app: app, timing: defaultTiming(), held: semaphore.NewWeighted(maxHeldBytes),
		clicks: clicks{slots: make(chan struct{}, maxClicks), clicked: func(context.Context, chat.Click) chat.Clicked { return chat.Clicked{} }},
	}
}

// OnClick sets the receiver of clicks, before Run. Without one they do nothing.
func (s *Stream) OnClick(f func(ctx context.Context, c chat.Click) chat.Clicked) {
	s.clicks.clicked = f
}

// Ready reports whether a connection is up.
func (s *Stream) Ready() bool {
	l := s.current.Load()
	return l != nil && l.isAlive()
}

// Failing reports that DingTalk refuses the application, or that several tries to connect failed in a row.
func (s *Stream) Failing() bool { return s.failures.Load() >= maxFailures }

const maxFailures = 3

// AwaitReceived implements [chat.Receiver].
func (s *Stream) AwaitReceived(ctx context.Context, c sessions.ConversationID) {
	s.arrivals.awaitStored(ctx, c)
}

// Stats returns the current counters.
func (s *Stream) Stats() Stats { return s.counters.stats() }

// receiver takes the frames of all links. decode reads a frame of a message. ctx carries the logger.
func (s *Stream) receiver(ctx context.Context, decode decoder, accept chat.Accept) receiver {
	return receiver{
		intake: intake{
			robot: sessions.RobotCode(s.app.ClientID), within: s.timing.accept, slots: make(chan struct{}, maxAccepts), held: s.held,
			arrivals: &s.arrivals, counters: &s.counters, decode: decode, accept: accept, ctx: context.WithoutCancel(ctx),
		},
		clicks: &s.clicks,
	}
}

// Run keeps one connection open until ctx ends. It retries also after a refused secret, which may be corrected at
// DingTalk.
func (s *Stream) Run(ctx context.Context, accept chat.Accept) error {
	r := s.receiver(ctx, frame.Decode, accept)
	var retiring sync.WaitGroup
	defer retiring.Wait()
	var early earlyEnds
	l := s.connectLink(ctx, r, 0)
	for l != nil {
		s.current.Store(l)
		how := s.watchLink(ctx, l)
		if how == stopped {
			break
		}
		wait := early.next(how, time.Since(l.opened), s.timing)
		zerolog.Ctx(ctx).Info().Str("why", how.String()).Dur("age", time.Since(l.opened)).Dur("wait", wait).
			Msg("Replacing the stream connection")
		old, replaced := l, make(chan struct{})
		retiring.Go(func() { s.retireLink(ctx, old, replaced) })
		l = s.connectLink(ctx, r, wait)
		close(replaced)
	}
	if l != nil {
		l.closeAfterAcks(time.Now().Add(s.timing.drain))
	}
	s.current.Store(nil)
	return nil
}

// watchLink ends with the reason for which a connection is replaced. A connection can be alive and yet receive nothing, so silence counts
// too.
func (s *Stream) watchLink(ctx context.Context, l *link) end {
	tick := time.NewTicker(s.timing.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return stopped
		case <-l.leave:
			s.counters.rotated.Add(1)
			return farewell
		case <-tick.C:
		}
		if !l.isAlive() {
			s.counters.lost.Add(1)
			return lost
		}
		if time.Since(time.Unix(0, l.seen.Load())) > s.timing.quiet {
			s.counters.rotated.Add(1)
			return silent
		}
	}
}

// retireLink closes a connection after its replacement and its last acks, before DingTalk does. A silent connection stays
// until it is replaced.
func (s *Stream) retireLink(ctx context.Context, l *link, replaced <-chan struct{}) {
	deadline := time.Now().Add(s.timing.grace)
	timeout := time.NewTimer(s.timing.grace)
	defer timeout.Stop()
	expired := timeout.C
	if !l.isLeaving() {
		expired = nil
	}
	select {
	case <-replaced:
	case <-expired:
	case <-ctx.Done():
	}
	if ctx.Err() != nil || expired == nil {
		deadline = time.Now().Add(s.timing.drain)
	}
	l.closeAfterAcks(deadline)
}

// connectLink returns nil when ctx has ended.
func (s *Stream) connectLink(ctx context.Context, r receiver, wait time.Duration) *link {
	for failures := 0; retry.Sleep(ctx, wait); failures++ {
		l, err := openLink(ctx, s.app, s.timing.open, r)
		if err == nil {
			s.counters.opened.Add(1)
			s.failures.Store(0)
			zerolog.Ctx(ctx).Info().Msg("Stream connection open")
			return l
		}
		if ctx.Err() != nil {
			return nil
		}
		s.counters.openFailed.Add(1)
		s.failures.Add(1)
		wait = s.timing.pauses.After(failures)
		s.logFailure(ctx, err, wait)
	}
	return nil
}

// An operator must fix some failures. The SDK returns the answer's body without its status.
func (s *Stream) logFailure(ctx context.Context, err error, wait time.Duration) {
	text := s.app.Secret.Redact(err.Error())
	for _, mark := range []string{"authFailed", "鉴权", "invalidClient", "InvalidAuthentication"} {
		if strings.Contains(text, mark) {
			s.failures.Store(maxFailures)
			zerolog.Ctx(ctx).Error().Str("error", text).Dur("retry_in_ms", wait).
				Msg("DingTalk refuses the client id or secret: an operator must correct them")
			return
		}
	}
	zerolog.Ctx(ctx).Warn().Str("error", text).Dur("retry_in_ms", wait).Msg("Failed to open a stream connection")
}

// earlyEnds counts consecutive connections that ended young: their replacement slows down, which pauses after failed
// opens do not cause.
type earlyEnds struct{ losses, farewells int }

// DingTalk may move a client several times while its servers restart. A pause costs messages then, so this many early
// farewells have none.
const freeFarewells = 8

func (e *earlyEnds) next(how end, age time.Duration, t timing) time.Duration {
	if age >= t.young {
		*e = earlyEnds{}
		return 0
	}
	if how == lost {
		e.losses++
		if e.losses == 1 {
			return 0
		}
		return t.pauses.After(e.losses - 2)
	}
	e.farewells++
	if e.farewells <= freeFarewells {
		return 0
	}
	return t.pauses.After(e.farewells - freeFarewells - 1)
}

// String is the word for the log.
func (e end) String() string {
	return [...]string{"stopped", "lost", "disconnect", "silent"}[e]
}
