package bot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// ledger counts what operators ask of a process after a restart.
type ledger struct {
	answered, drained, flushed, debt, resumed, redelivered, doubled, lost atomic.Int64

	mu     sync.Mutex
	stored [4096]accepted // the latest messages that were acknowledged, round and round
	next   int
}

// accepted is a message that was acknowledged: it must be in the log.
type accepted struct {
	key sessions.Key
	id  int64
	at  time.Time
}

// note keeps a message in mind until the stop.
func (a *ledger) note(key sessions.Key, id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stored[a.next%len(a.stored)] = accepted{key, id, time.Now()}
	a.next++
}

// turn counts a turn that committed. A message that was in a turn before was begun by another process, or by this one
// before trouble.
func (a *ledger) turn(asked []sessions.Event, stopping bool) {
	a.answered.Add(1)
	if stopping {
		a.drained.Add(1)
	}
	for _, e := range asked {
		if e.Attempts > 1 {
			a.resumed.Add(1)
		}
	}
}

func (a *ledger) figures() sessions.RestartFigures {
	return sessions.RestartFigures{
		Answered: a.answered.Load(), Drained: a.drained.Load(), Flushed: a.flushed.Load(), Debt: a.debt.Load(),
		Resumed: a.resumed.Load(), Redelivered: a.redelivered.Load(), Doubled: a.doubled.Load(), Lost: a.lost.Load(),
	}
}

// byName are the figures as they are called.
func (a *ledger) byName() map[string]*atomic.Int64 {
	return map[string]*atomic.Int64{
		"answered": &a.answered, "drained": &a.drained, "flushed": &a.flushed, "debt": &a.debt, "resumed": &a.resumed,
		"redelivered": &a.redelivered, "doubled": &a.doubled, "lost": &a.lost,
	}
}

// recent are the messages in mind, with their ages.
func (a *ledger) recent() []sessions.Stored {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]sessions.Stored, 0, min(a.next, len(a.stored)))
	for _, m := range a.stored[:min(a.next, len(a.stored))] {
		list = append(list, sessions.Stored{Key: m.key, EventID: m.id, Age: time.Since(m.at)})
	}
	return list
}

// reportEvery is how often a process writes its figures, and looks for others that ended.
const reportEvery = 5 * time.Second

// reports keeps the account of this process while it runs, and tells of those that ended.
func (b *Bot) reports(ctx context.Context) {
	if b.cfg.Reporter == nil {
		return
	}
	opened := false
	look := func(ctx context.Context) {
		one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
		defer stop()
		if err := b.reportsOnce(one, &opened); err != nil && ctx.Err() == nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Restart report not kept")
		}
	}
	look(ctx)
	b.every(ctx, reportEvery, look)
}

func (b *Bot) reportsOnce(ctx context.Context, opened *bool) error {
	r, me := b.cfg.Reporter, b.leases.Owner()
	if !*opened {
		if err := r.OpenRestart(ctx, me); err != nil {
			return err
		}
		*opened = true
	}
	ended, err := r.EndedRestarts(ctx)
	for _, e := range ended {
		logReport(zerolog.Ctx(ctx), e)
	}
	if err != nil {
		return err
	}
	return r.KeepRestart(ctx, me, sessions.Running, b.tally.figures())
}

// closeReport ends the account of this process at its clean stop, and logs it.
func (b *Bot) closeReport(ctx context.Context, began time.Time) {
	log := zerolog.Ctx(ctx)
	if b.cfg.Reporter == nil {
		logReport(log, sessions.Restart{Replica: b.leases.Owner(), Ending: sessions.Clean, Figures: b.tally.figures()})
		return
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	lost, err := b.cfg.Reporter.Gone(one, b.tally.recent())
	if lost > 0 {
		log.Error().Int64("messages", lost).Msg("Messages that were acknowledged are not in the log")
	}
	b.tally.lost.Add(lost)
	if err == nil {
		err = b.cfg.Reporter.KeepRestart(one, b.leases.Owner(), sessions.Clean, b.tally.figures())
	}
	if err != nil {
		log.Warn().Err(err).Msg("Restart report not stored") // another process closes the account
	}
	logReport(log, sessions.Restart{
		Replica: b.leases.Owner(), StartedAt: began, StoppedAt: time.Now(), Ending: sessions.Clean, Figures: b.tally.figures(),
	})
}

// logReport writes the line that operators look for after a restart: at the stop by the process itself, and once more by
// whoever takes over.
func logReport(log *zerolog.Logger, r sessions.Restart) {
	f := r.Figures
	log.Info().Str("of", string(r.Replica)).Str("ending", string(r.Ending)).Time("started_at", r.StartedAt).Time("stopped_at", r.StoppedAt).
		Int64("answered", f.Answered).Int64("drained", f.Drained).Int64("flushed", f.Flushed).Int64("debt", f.Debt).
		Int64("resumed", f.Resumed).Int64("redelivered", f.Redelivered).Int64("doubled", f.Doubled).Int64("lost", f.Lost).
		Msg("Restart report")
}
