package bot

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"ebb/bot/schedule"
	"ebb/sessions"
)

// newTimer stores reminders as messages, which wake sessions as those of people do.
func (b *Bot) newTimer() *schedule.Runner {
	return schedule.NewRunner(schedule.RunnerConfig{
		Store: b.cfg.Schedules, Replica: b.shared.Leases.Owner(), Leads: b.leads, Now: b.shared.Now, Location: b.shared.Location, Grace: b.cfg.StaleAfter,
		Settings: b.cfg.Planner.Settings, Metrics: b.cfg.Metrics,
		Language: b.shared.Languages.OfText,
		Serves:   b.placing.serves,
		Refuse:   b.handler.RefuseSchedule,
		Accepted: b.wakeFor,
	})
}

func (b *Bot) leads(ctx context.Context) (bool, error) {
	if b.cfg.Elector == nil {
		return true, nil
	}
	l, err := b.cfg.Elector.Leader(ctx)
	return l.Replica == b.shared.Leases.Owner(), err
}

// wakeFor notes the lease of an accepted message, and wakes its session if it is this replica's.
func (b *Bot) wakeFor(a sessions.Accepted) {
	b.shared.Leases.Learn(a.Lease)
	if a.Lease.Owner != b.shared.Leases.Owner() {
		b.runner.Look(a.Lease.Key)
	}
	if a.New && a.Lease.Owner == b.shared.Leases.Owner() {
		b.runner.Wake(a.Lease.Key)
	}
}

// maxLost is the number of messages in a row to a person or a conversation that is gone after which a schedule ends: each takes a call.
const maxLost = 3

// noteSchedules counts a reply of schedules that DingTalk can't deliver to anyone. One that arrived begins the count again.
func noteSchedules(ctx context.Context, cfg *Config, o sessions.Outgoing, arrived bool) {
	if cfg.Schedules == nil {
		return
	}
	for _, id := range o.Reply.Target.Schedules {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), cfg.CommitTimeout)
		var ended bool
		var err error
		if arrived {
			err = cfg.Schedules.ReachSchedule(one, o.Key, id)
		} else {
			ended, err = cfg.Schedules.LoseSchedule(one, o.Key, id, maxLost)
		}
		stop()
		log := zerolog.Ctx(ctx).With().Int64("schedule", id).Logger()
		switch {
		case err != nil && !errors.Is(err, sessions.ErrNotFound):
			log.Warn().Err(err).Bool("arrived", arrived).Msg("Outcome of a schedule's message not counted")
		case ended:
			log.Warn().Int("lost", maxLost).Msg("Schedule ended: its person or conversation is gone")
		}
	}
}
