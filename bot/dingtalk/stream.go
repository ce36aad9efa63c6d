package dingtalk

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/frame"
	"ebb/bot/dingtalk/request"
	"ebb/sessions/retry"
)

type end int

const (
	stopped  end = iota // Run ends
	lost                // the connection is gone
	farewell            // DingTalk asked to leave
	silent              // no data for so long that the connection may be dead
)

// Run keeps one connection open until ctx ends. It retries also after a refused secret, which may be corrected at
// DingTalk.
func (t *Transport) Run(ctx context.Context, accept chat.Accept) error {
	in := intake{t: t, decode: frame.Decode, accept: accept, ctx: context.WithoutCancel(ctx)}
	var retiring sync.WaitGroup
	defer retiring.Wait()
	var early earlyEnds
	l := t.connectLink(ctx, in, 0)
	for l != nil {
		t.current.Store(l)
		how := t.watchLink(ctx, l)
		if how == stopped {
			break
		}
		wait := early.next(how, time.Since(l.opened), t.timing)
		zerolog.Ctx(ctx).Info().Str("why", how.String()).Dur("age", time.Since(l.opened)).Dur("wait", wait).
			Msg("Replacing the stream connection")
		old, replaced := l, make(chan struct{})
		retiring.Go(func() { t.retireLink(ctx, old, replaced) })
		l = t.connectLink(ctx, in, wait)
		close(replaced)
	}
	if l != nil {
		l.closeAfterAcks(time.Now().Add(t.timing.drain))
	}
	t.current.Store(nil)
	return nil
}

// watchLink ends with the reason for which a connection is replaced. A connection can be alive and yet receive nothing, so silence counts
// too.
func (t *Transport) watchLink(ctx context.Context, l *link) end {
	tick := time.NewTicker(t.timing.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return stopped
		case <-l.leave:
			t.counters.rotated.Add(1)
			return farewell
		case <-tick.C:
		}
		if !l.isAlive() {
			t.counters.lost.Add(1)
			return lost
		}
		if time.Since(time.Unix(0, l.seen.Load())) > t.timing.quiet {
			t.counters.rotated.Add(1)
			return silent
		}
	}
}

// retireLink closes a connection after its replacement and its last acks, before DingTalk does. A silent connection stays
// until it is replaced.
func (t *Transport) retireLink(ctx context.Context, l *link, replaced <-chan struct{}) {
	deadline := time.Now().Add(t.timing.grace)
	timeout := time.NewTimer(t.timing.grace)
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
		deadline = time.Now().Add(t.timing.drain)
	}
	l.closeAfterAcks(deadline)
}

// connectLink returns nil when ctx has ended.
func (t *Transport) connectLink(ctx context.Context, in intake, wait time.Duration) *link {
	for failures := 0; retry.Sleep(ctx, wait); failures++ {
		l, err := t.openLink(ctx, in)
		if err == nil {
			t.counters.opened.Add(1)
			t.failures.Store(0)
			zerolog.Ctx(ctx).Info().Msg("Stream connection open")
			return l
		}
		if ctx.Err() != nil {
			return nil
		}
		t.counters.openFailed.Add(1)
		t.failures.Add(1)
		wait = t.timing.pauses.After(failures)
		t.logFailure(ctx, err, wait)
	}
	return nil
}

// An operator must fix some failures. The SDK returns the answer's body without its status.
func (t *Transport) logFailure(ctx context.Context, err error, wait time.Duration) {
	text := request.Secret(t.config.ClientSecret).Redact(err.Error())
	for _, mark := range []string{"authFailed", "鉴权", "invalidClient", "InvalidAuthentication"} {
		if strings.Contains(text, mark) {
			t.failures.Store(maxFailures)
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
