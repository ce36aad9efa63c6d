package bot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/periodic"
	"ebb/sessions"
)

// ledger counts what operators ask of a process after a restart.
type ledger struct {
	answered, drained, flushed, debt, resumed, redelivered, doubled, lost atomic.Int64

	mu     sync.Mutex
	stored [4096]accepted // the latest messages that were acknowledged, round and round
	next   int
	begun  map[eventRow]bool // messages whose first turn was begun here, until one commits
}

// maxBegun bounds what is remembered of turns that other processes may have ended.
const maxBegun = 4096

// eventRow is an event of the log.
type eventRow struct {
	key sessions.Key
	id  int64
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

// begin notes the messages that are in a turn for the first time: what they came to before is nobody else's doing.
func (a *ledger) begin(key sessions.Key, asked []sessions.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun == nil || len(a.begun) > maxBegun {
		a.begun = map[eventRow]bool{}
	}
	for _, e := range asked {
		if e.Attempts == 0 {
			a.begun[eventRow{key, e.ID}] = true
		}
	}
}

// turn counts a turn that committed, and of its messages those whose first turn broke in another process.
func (a *ledger) turn(key sessions.Key, asked []sessions.Event, stopping bool) {
	a.answered.Add(1)
	if stopping {
		a.drained.Add(1)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range asked {
		if e.Attempts > 0 && !a.begun[eventRow{key, e.ID}] {
			a.resumed.Add(1)
		}
		delete(a.begun, eventRow{key, e.ID})
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
	periodic.Every(ctx, reportEvery, b.leases.Trusted, look)
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
		b.metrics.ended.WithLabelValues(string(e.Ending)).Inc()
		b.metrics.endedLost.Add(float64(max(0, e.Figures.Lost)))
		logReport(zerolog.Ctx(ctx), e)
	}
	if err != nil {
		return err
	}
	return r.KeepRestart(ctx, me, sessions.Running, b.tally.figures())
}

// endReport says that this process ends as it was told to, while its heart still beats: without a heart and without that
// word another process would tell its end as a kill. It reports whether that is stored.
func (b *Bot) endReport(ctx context.Context) bool {
	if b.cfg.Reporter == nil {
		return false
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	if err := b.cfg.Reporter.KeepRestart(one, b.leases.Owner(), sessions.Clean, b.tally.figures()); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Restart report not stored") // another process closes the account
		return false
	}
	return true
}

// closeReport looks for the messages of this process in the log when everything else is done, and logs its account. Where
// the storage did not take the account a moment ago, it is not asked again.
func (b *Bot) closeReport(ctx context.Context, began time.Time, stored bool) {
	log := zerolog.Ctx(ctx)
	if stored {
		if err := b.countLost(ctx); err != nil {
			log.Warn().Err(err).Msg("Acknowledged messages could not be looked for in the log")
		}
	}
	logReport(log, sessions.Restart{
		Replica: b.leases.Owner(), StartedAt: began, StoppedAt: time.Now(), Ending: sessions.Clean, Figures: b.tally.figures(),
	})
}

func (b *Bot) countLost(ctx context.Context) error {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	lost, err := b.cfg.Reporter.Gone(one, b.tally.recent())
	if err != nil || lost == 0 {
		return err
	}
	zerolog.Ctx(ctx).Error().Int64("messages", lost).Msg("Messages that were acknowledged are not in the log")
	b.tally.lost.Add(lost)
	return b.cfg.Reporter.KeepRestart(one, b.leases.Owner(), sessions.Clean, b.tally.figures())
}

// logReport writes the line that operators look for after a restart: at the stop by the process itself, and once more by
// whoever takes over.
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
