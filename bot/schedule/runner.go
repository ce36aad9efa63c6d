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
	"ebb/sessions/guard"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

const (
	// checkInterval is the precision of schedules.
	checkInterval = time.Second
	// page is the number of due schedules that are read at a time.
	page = 100
	// fireTimeout bounds the wait for a session that is locked, as by an erasure.
	fireTimeout = 2 * time.Second
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
	// Language is that of the line before a scheduled message: zh or en.
	Language func(sessions.ConversationID, string) string
	// Serves reports whether the bot serves the sender and the conversation of a message.
	Serves func(context.Context, sessions.Message) (bool, error)
	// Refuse ends a schedule whose message is refused. A conflict is as that of RefuseSchedule.
	Refuse func(context.Context, sessions.Schedule) error
	// Accepted is called after the message of a schedule was stored.
	Accepted func(sessions.Accepted)
	Metrics  prometheus.Registerer
}

// Runner stores the messages of schedules at their times.
type Runner struct {
	cfg           RunnerConfig
	panics        map[firing]int    // times that panicked
	resume        sessions.Schedule // the last run ended behind it; zero: it came to its end
	fired, missed prometheus.Counter
}

type firing struct {
	key sessions.Key
	id  int64
}

// maxPanics is the number of panics after which a schedule ends.
const maxPanics = 3

// NewRunner returns a runner.
func NewRunner(cfg RunnerConfig) *Runner {
	count := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "ebb", Name: name, Help: help})
		cfg.Metrics.MustRegister(c)
		return c
	}
	return &Runner{
		cfg:    cfg,
		panics: map[firing]int{},
		fired:  count("schedules_fired_total", "Reminders and scheduled messages stored in time, or within agent.stale_after."),
		missed: count("schedules_missed_total", "Reminders and scheduled messages that were due longer ago than agent.stale_after: left out if repeated, else people read that they were missed."),
	}
}

// Task returns the background work. Each replica has it, and only the leader fires.
func (r *Runner) Task() periodic.Task {
	return periodic.Task{
		Interval: checkInterval, Timeout: time.Minute, Ready: func() bool { return r.cfg.Settings().Enabled }, Do: r.Run,
		Failure: "Failed to store the messages of schedules", Recovery: "Messages of schedules are stored again",
		Pauses: retry.Pauses{First: checkInterval, Max: checkInterval}, // a lasting failure is logged once
	}
}

// Run stores the messages of all due schedules. A failure of one holds up only those of its session. A run that is cut off goes on
// at the next one.
func (r *Runner) Run(ctx context.Context) error {
	failed := map[sessions.Key]error{}
	after := r.resume
	for {
		due, err := r.cfg.Store.DueSchedules(ctx, after, page)
		if err != nil {
			return err
		}
		if len(due) > 0 {
			if leads, err := r.cfg.Leads(ctx); err != nil || !leads {
				return err
			}
		}
		for _, after = range due {
			if failed[after.Key] != nil {
				continue
			}
			if err := r.fire(ctx, after); err != nil {
				failed[after.Key] = fmt.Errorf("schedule %d: %w", after.ID, err)
			}
			if ctx.Err() != nil {
				r.resume = after
				return ctx.Err()
			}
		}
		if len(due) < page {
			break
		}
	}
	r.resume = sessions.Schedule{}
	for key, err := range failed {
		return fmt.Errorf("%d sessions failed, one of them is %s: %w", len(failed), key, err)
	}
	return nil
}

// fire stores the message of a due schedule, or postpones it. A schedule that was changed or ended meanwhile is left alone.
func (r *Runner) fire(ctx context.Context, s sessions.Schedule) error {
	ctx, stop := context.WithTimeout(ctx, fireTimeout)
	defer stop()
	err := guard.Do(ctx, guard.Task, func() error { return r.try(ctx, s) })
	one := firing{s.Key, s.ID}
	if !errors.Is(err, guard.ErrPanicked) {
		delete(r.panics, one)
	} else if r.panics[one]++; r.panics[one] >= maxPanics {
		delete(r.panics, one)
		err = fmt.Errorf("%w: %w", sessions.ErrRefused, err)
	}
	if errors.Is(err, sessions.ErrRefused) || errors.Is(err, sessions.ErrNotFound) {
		zerolog.Ctx(ctx).Error().Err(err).EmbedObject(s.Key).Int64("schedule", s.ID).Msg("Schedule ended, its message can't be stored")
		err = r.cfg.Refuse(ctx, s)
	}
	if errors.Is(err, sessions.ErrConflict) {
		return nil
	}
	return err
}

// try keeps a time that was due before the quiet hours, such as one that a short outage delayed: it is late, and none of the next
// morning. A time within them counts as their end.
func (r *Runner) try(ctx context.Context, s sessions.Schedule) error {
	if s.Fault != nil {
		return s.Fault
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(s.Key).Int64("schedule", s.ID).Logger()
	spec, err := when.Read(s.Spec)
	if err != nil {
		log.Error().Err(err).Msg("Times of a schedule are unreadable, it fires once more and ends")
	}
	now := r.cfg.Now().In(r.cfg.Location)
	quiet := when.Quiet{}
	if spec.Repeats() || s.Kind == sessions.AskModel {
		quiet = r.cfg.Settings().Quiet
	}
	at, next := Occurrence(spec, s.DueAt.In(r.cfg.Location), now, r.cfg.Grace, quiet)
	missed := now.Sub(at) > r.cfg.Grace
	served, err := r.cfg.Serves(ctx, s.Creator)
	if err != nil {
		return err
	}
	if !served {
		return r.skip(ctx, s, missed, next)
	}
	switch until, ok := quiet.End(now); {
	case ok && at.After(now):
		return r.cfg.Store.PostponeSchedule(ctx, s, until)
	case ok && missed && next.IsZero():
		return nil // people read at the end of the quiet hours that it was missed
	}
	if missed && spec.Repeats() && !next.IsZero() {
		if err := r.cfg.Store.PostponeSchedule(ctx, s, next); err != nil {
			return err
		}
		r.missed.Inc()
		log.Warn().Time("due_at", at).Time("next", next).Msg("Schedule missed a time")
		return nil
	}
	accepted, err := r.cfg.Store.FireSchedule(ctx, r.cfg.Replica, s, next, r.message(s, spec, at, next))
	if err != nil {
		return err
	}
	if missed {
		r.missed.Inc()
	} else {
		r.fired.Inc()
	}
	log.Info().Time("due_at", at).Msg("Schedule fired")
	r.cfg.Accepted(accepted)
	return nil
}

// skip leaves out a time that access rules refuse. They may change, so a single time waits until it is missed.
func (r *Runner) skip(ctx context.Context, s sessions.Schedule, missed bool, next time.Time) error {
	log := zerolog.Ctx(ctx).With().EmbedObject(s.Key).Int64("schedule", s.ID).Logger()
	switch {
	case !next.IsZero():
		log.Warn().Msg("Time of a schedule skipped: access rules refuse its conversation or its creator, or its bot is not configured")
		return r.cfg.Store.PostponeSchedule(ctx, s, next)
	case missed:
		log.Warn().Msg("Schedule ended: access rules refuse its conversation or its creator, or its bot is not configured")
		return r.cfg.Refuse(ctx, s)
	}
	return nil
}

// message is the message of one time. Its id is the same for each attempt.
func (r *Runner) message(s sessions.Schedule, spec when.Spec, at, next time.Time) sessions.Message {
	m := s.Creator
	m.EncryptedID = "" // only the platform's frames confirm that two ids are one person's
	m.ID = sessions.MessageID(fmt.Sprintf("schedule:%d:%d", s.ID, at.Unix()))
	m.Scheduled = &sessions.Scheduled{
		ID: s.ID, Kind: s.Kind, DueAt: at.In(r.cfg.Location), Repeats: spec.Repeats(), Origin: s.Origin, Lang: r.cfg.Language(m.ConversationID, s.Text),
	}
	if !next.IsZero() {
		m.Scheduled.Next = next.In(r.cfg.Location)
	}
	m.Text = m.Scheduled.Lead() + s.Text
	return m
}

// Occurrence returns the time that a schedule due at due fires for now, and its next time, which is after now; zero for none. Times
// that passed together fire once: the last of them within the grace, else the one that was due. A time in quiet hours counts as their
// end.
func Occurrence(spec when.Spec, due, now time.Time, grace time.Duration, quiet when.Quiet) (at, next time.Time) {
	shifted := func(t time.Time) time.Time {
		if until, ok := quiet.End(t); ok {
			return until
		}
		return t
	}
	after := now.Add(-grace)
	if _, ok := quiet.End(after); ok {
		after = after.AddDate(0, 0, -1) // these quiet hours began since then
	}
	if due.After(after) {
		after = due
	}
	at = shifted(due)
	next, ok := spec.Next(after)
	for ok && !next.After(now) {
		if t := shifted(next); !t.After(now) && now.Sub(t) <= grace {
			at = t
		}
		next, ok = spec.Next(next)
	}
	if !ok {
		next = time.Time{}
	}
	return at, next
}
