package bot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/periodic"
)

type restartStats struct {
	answered, drained, flushed, debt, resumed, redelivered, doubled, lost atomic.Int64

	mu     sync.Mutex
	stored [4096]accepted // ring buffer of the latest acknowledged messages
	next   int
	begun  *lru.Cache[eventRow, struct{}] // messages whose first turn started here and has not committed
}

func newRestartStats() *restartStats {
	begun, _ := lru.New[eventRow, struct{}](maxBegun) // it fails only without a size
	return &restartStats{begun: begun}
}

// maxBegun bounds the remembered turns, because other processes may commit them.
const maxBegun = 4096

type eventRow struct {
	key sessions.Key
	id  int64
}

// accepted is acknowledged: it must be in the log.
type accepted struct {
	key sessions.Key
	id  int64
	at  time.Time
}

func (a *restartStats) note(key sessions.Key, id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stored[a.next%len(a.stored)] = accepted{key, id, time.Now()}
	a.next++
}

// begin records messages in their first turn. Their later attempts do not count as resumed.
func (a *restartStats) begin(key sessions.Key, asked []sessions.Event) {
	for _, e := range asked {
		if e.Attempts == 0 {
			a.begun.Add(eventRow{key, e.ID}, struct{}{})
		}
	}
}

// turn counts messages as resumed whose first turn broke in another process.
func (a *restartStats) turn(key sessions.Key, asked []sessions.Event, stopping bool) {
	a.answered.Add(1)
	if stopping {
		a.drained.Add(1)
	}
	for _, e := range asked {
		if begunHere := a.begun.Remove(eventRow{key, e.ID}); e.Attempts > 0 && !begunHere {
			a.resumed.Add(1)
		}
	}
}

func (a *restartStats) figures() sessions.RestartFigures {
	return sessions.RestartFigures{
		Answered: a.answered.Load(), Drained: a.drained.Load(), Flushed: a.flushed.Load(), Debt: a.debt.Load(),
		Resumed: a.resumed.Load(), Redelivered: a.redelivered.Load(), Doubled: a.doubled.Load(), Lost: a.lost.Load(),
	}
}

func (a *restartStats) byName() map[string]*atomic.Int64 {
	return map[string]*atomic.Int64{
		"answered": &a.answered, "drained": &a.drained, "flushed": &a.flushed, "debt": &a.debt, "resumed": &a.resumed,
		"redelivered": &a.redelivered, "doubled": &a.doubled, "lost": &a.lost,
	}
}

func (a *restartStats) recent() []sessions.Stored {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]sessions.Stored, 0, min(a.next, len(a.stored)))
	for _, m := range a.stored[:min(a.next, len(a.stored))] {
		list = append(list, sessions.Stored{Key: m.key, EventID: m.id, Age: time.Since(m.at)})
	}
	return list
}

const reportEvery = 5 * time.Second

func (b *Bot) keepReport(ctx context.Context) {
	if b.cfg.Reporter == nil {
		return
	}
	opened := false
	periodic.Run(ctx, periodic.Task{Interval: reportEvery, AtOnce: true, Timeout: b.shared.CommitTimeout, Ready: b.shared.Leases.Trusted, Do: func(one context.Context) error {
		if err := b.writeReport(one, &opened); err != nil && ctx.Err() == nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Failed to update the restart report")
		}
		return nil
	}})
}

func (b *Bot) writeReport(ctx context.Context, opened *bool) error {
	r, me := b.cfg.Reporter, b.shared.Leases.Owner()
	if !*opened {
		if err := r.OpenRestart(ctx, me); err != nil {
			return err
		}
		*opened = true
	}
	ended, err := r.EndedRestarts(ctx)
	for _, e := range ended {
		b.metrics.ended.WithLabelValues(string(e.Ending)).Inc()
		b.metrics.endedLost.Add(float64(max(0, e.Figures.Lost)))
		logReport(zerolog.Ctx(ctx), e)
	}
	if err != nil {
		return err
	}
	return r.KeepRestart(ctx, me, sessions.Running, b.restarts.figures())
}

// endReport records a clean stop while the heartbeat still runs: a process without either counts as killed. It
// reports whether the record is stored.
func (b *Bot) endReport(ctx context.Context) bool {
	if b.cfg.Reporter == nil {
		return false
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.shared.CommitTimeout)
	defer stop()
	if err := b.cfg.Reporter.KeepRestart(one, b.shared.Leases.Owner(), sessions.Clean, b.restarts.figures()); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the restart report") // another process closes the report
		return false
	}
	return true
}

// closeReport looks up the acknowledged messages in the log after all other work, unless the storage has just failed.
func (b *Bot) closeReport(ctx context.Context, began time.Time, stored bool) {
	log := zerolog.Ctx(ctx)
	if stored {
		if err := b.countLost(ctx); err != nil {
			log.Warn().Err(err).Msg("Failed to look up acknowledged messages in the log")
		}
	}
	logReport(log, sessions.Restart{
		Replica: b.shared.Leases.Owner(), StartedAt: began, StoppedAt: time.Now(), Ending: sessions.Clean, Figures: b.restarts.figures(),
	})
}

func (b *Bot) countLost(ctx context.Context) error {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.shared.CommitTimeout)
	defer stop()
	lost, err := b.cfg.Reporter.Gone(one, b.restarts.recent())
	if err != nil || lost == 0 {
		return err
	}
	zerolog.Ctx(ctx).Error().Int64("messages", lost).Msg("Messages that were acknowledged are not in the log")
	b.restarts.lost.Add(lost)
	return b.cfg.Reporter.KeepRestart(one, b.shared.Leases.Owner(), sessions.Clean, b.restarts.figures())
}

// Operators read the line at the stop; the successor writes it once more.
func logReport(log *zerolog.Logger, r sessions.Restart) {
	f, level := r.Figures, zerolog.InfoLevel
	if r.Ending == sessions.Killed {
		level = zerolog.WarnLevel
	}
	log.WithLevel(level).Str("of", string(r.Replica)).Str("ending", string(r.Ending)).Time("started_at", r.StartedAt).Time("stopped_at", r.StoppedAt).
		Int64("answered", f.Answered).Int64("drained", f.Drained).Int64("flushed", f.Flushed).Int64("debt", f.Debt).
		Int64("resumed", f.Resumed).Int64("redelivered", f.Redelivered).Int64("doubled", f.Doubled).Int64("lost", f.Lost).
		Msg("Restart report")
}
