package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/bot/schedule/when"
	"ebb/sessions"
	"ebb/sessions/periodic"
)

const (
	// checkInterval is the precision of schedules.
	checkInterval = time.Second
	// page is the number of due schedules that are read at a time.
	page = 100
)

// RunnerConfig has the dependencies of a [Runner].
type RunnerConfig struct {
	Store    sessions.Schedules
	Replica  sessions.ReplicaID
	Leads    func(ctx context.Context) (bool, error) // whether this replica leads
	Now      func() time.Time                        // the storage's clock
	Location *time.Location
	Grace    time.Duration // a time that passed longer ago is missed
	Settings func() Settings
	// Serves reports whether the bot serves the sender and the conversation of a message.
	Serves func(sessions.Message) bool
	// Accepted is called after the message of a schedule was stored.
	Accepted func(sessions.Accepted)
	Metrics  prometheus.Registerer
}

// Runner stores the messages of schedules at their times.
type Runner struct {
	cfg           RunnerConfig
	fired, missed prometheus.Counter
}

// NewRunner returns a runner.
func NewRunner(cfg RunnerConfig) *Runner {
	count := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "ebb", Name: name, Help: help})
		cfg.Metrics.MustRegister(c)
		return c
	}
	return &Runner{
		cfg:    cfg,
		fired:  count("schedules_fired_total", "Reminders and scheduled messages stored in time, or within agent.stale_after."),
		missed: count("schedules_missed_total", "Reminders and scheduled messages that were due longer ago than agent.stale_after: people read that they were missed."),
	}
}

// Task returns the background work. Each replica has it, and only the leader fires.
func (r *Runner) Task() periodic.Task {
	return periodic.Task{
		Interval: checkInterval, Timeout: time.Minute, Ready: func() bool { return r.cfg.Settings().Enabled }, Do: r.Run,
		Failure: "Failed to store the messages of schedules",
	}
}

// Run stores the messages of all due schedules. A failure of one does not hold up the others.
func (r *Runner) Run(ctx context.Context) error {
	for {
		due, err := r.cfg.Store.DueSchedules(ctx, page)
		if err != nil || len(due) == 0 {
			return err
		}
		if leads, err := r.cfg.Leads(ctx); err != nil || !leads {
			return err
		}
		var failed error
		for _, s := range due {
			if err := r.fire(ctx, s); err != nil {
				failed = errors.Join(failed, fmt.Errorf("session %s: %w", s.Key, err))
			}
		}
		if failed != nil || len(due) < page {
			return failed
		}
	}
}

// fire stores the message of a due schedule, or postpones it. A schedule that was changed or ended meanwhile is left alone.
func (r *Runner) fire(ctx context.Context, s sessions.Schedule) error {
	err := r.try(ctx, s)
	if errors.Is(err, sessions.ErrConflict) {
		return nil
	}
	if errors.Is(err, sessions.ErrRefused) || errors.Is(err, sessions.ErrNotFound) {
		zerolog.Ctx(ctx).Error().Err(err).EmbedObject(s.Key).Int64("schedule", s.ID).Msg("Schedule ended, its message can't be stored")
		return r.end(ctx, s)
	}
	return err
}

func (r *Runner) try(ctx context.Context, s sessions.Schedule) error {
	log := zerolog.Ctx(ctx).With().EmbedObject(s.Key).Int64("schedule", s.ID).Logger()
	spec, err := when.Read(s.Spec)
	if err != nil {
		log.Error().Err(err).Msg("Times of a schedule are unreadable, it fires once more and ends")
	}
	if !r.cfg.Serves(s.Creator) {
		log.Warn().Msg("Schedule ended: access rules refuse its conversation or its creator")
		return r.end(ctx, s)
	}
	now := r.cfg.Now().In(r.cfg.Location)
	if until, quiet := r.cfg.Settings().Quiet.End(now); quiet && (spec.Repeats() || s.Kind == sessions.AskModel) {
		return r.cfg.Store.PostponeSchedule(ctx, s, until)
	}
	at, next := Occurrence(spec, s.DueAt, now, r.cfg.Grace)
	accepted, err := r.cfg.Store.FireSchedule(ctx, r.cfg.Replica, s, next, r.message(s, spec, at, next))
	if err != nil {
		return err
	}
	if now.Sub(at) > r.cfg.Grace {
		r.missed.Inc()
	} else {
		r.fired.Inc()
	}
	log.Info().Time("due_at", at).Msg("Schedule fired")
	r.cfg.Accepted(accepted)
	return nil
}

func (r *Runner) end(ctx context.Context, s sessions.Schedule) error {
	_, err := r.cfg.Store.CancelSchedule(ctx, s.Key, s.ID)
	if errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	return err
}

// message is the message of one time. Its id is the same for each attempt.
func (r *Runner) message(s sessions.Schedule, spec when.Spec, at, next time.Time) sessions.Message {
	m := s.Creator
	m.EncryptedID = "" // only the platform's frames confirm that two ids are one person's
	m.ID = sessions.MessageID(fmt.Sprintf("schedule:%d:%d", s.ID, at.Unix()))
	m.Scheduled = &sessions.Scheduled{ID: s.ID, Kind: s.Kind, DueAt: at.In(r.cfg.Location), Repeats: spec.Repeats()}
	if !next.IsZero() {
		m.Scheduled.Next = next.In(r.cfg.Location)
	}
	m.Text = m.Scheduled.Lead() + s.Text
	return m
}

// Occurrence returns the time that a schedule due at due fires for now, and its next time, which is after now; zero for none. Times
// that passed together fire once: the last of them within the grace, else the one that was due.
func Occurrence(spec when.Spec, due, now time.Time, grace time.Duration) (at, next time.Time) {
	at = due
	after := due
	if past := now.Add(-grace); past.After(due) {
		after = past
	}
	next, ok := spec.Next(after)
	for ok && !next.After(now) {
		at = next
		next, ok = spec.Next(next)
	}
	if !ok {
		next = time.Time{}
	}
	return at, next
}
