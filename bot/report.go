package bot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"ebb/bot/parts"
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

// restartReport keeps the figures of this process in the storage, and closes the reports of processes that ended.
type restartReport struct {
	store  sessions.Reporter
	shared *parts.Shared
	stats  *restartStats
	ended  func(sessions.Restart) // counts an end that this process reported first
}

// keep stores the figures again and again, until ctx ends.
func (r *restartReport) keep(ctx context.Context) {
	opened := false
	periodic.Run(ctx, periodic.Task{Interval: reportEvery, AtOnce: true, Timeout: r.shared.CommitTimeout, Ready: r.shared.Leases.Trusted, Do: func(one context.Context) error {
		if err := r.write(one, &opened); err != nil && ctx.Err() == nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Failed to update the restart report")
		}
		return nil
	}})
}

func (r *restartReport) write(ctx context.Context, opened *bool) error {
	me := r.shared.Leases.Owner()
	if !*opened {
		if err := r.store.OpenRestart(ctx, me); err != nil {
			return err
		}
		*opened = true
	}
	ended, err := r.store.EndedRestarts(ctx)
	for _, e := range ended {
		r.ended(e)
		logReport(zerolog.Ctx(ctx), e)
	}
	if err != nil {
		return err
	}
	return r.store.KeepRestart(ctx, me, sessions.Running, r.stats.figures())
}

// end records a clean stop before the heartbeat is deleted: a process without either counts as killed. It
// reports whether the record is stored.
func (r *restartReport) end(ctx context.Context) bool {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), r.shared.CommitTimeout)
	defer stop()
	if err := r.store.KeepRestart(one, r.shared.Leases.Owner(), sessions.Clean, r.stats.figures()); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the restart report") // another process closes the report
		return false
	}
	return true
}

// close looks up the acknowledged messages in the log after all other work, unless the storage has just failed.
func (r *restartReport) close(ctx context.Context, began time.Time, stored bool) {
	log := zerolog.Ctx(ctx)
	if stored {
		if err := r.countLost(ctx); err != nil {
			log.Warn().Err(err).Msg("Failed to look up acknowledged messages in the log")
		}
	}
	logReport(log, sessions.Restart{
		Replica: r.shared.Leases.Owner(), StartedAt: began, StoppedAt: time.Now(), Ending: sessions.Clean, Figures: r.stats.figures(),
	})
}

func (r *restartReport) countLost(ctx context.Context) error {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), r.shared.CommitTimeout)
	defer stop()
	lost, err := r.store.Gone(one, r.stats.recent())
	if err != nil || lost == 0 {
		return err
	}
	zerolog.Ctx(ctx).Error().Int64("messages", lost).Msg("Messages that were acknowledged are not in the log")
	r.stats.lost.Add(lost)
	return r.store.KeepRestart(one, r.shared.Leases.Owner(), sessions.Clean, r.stats.figures())
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
