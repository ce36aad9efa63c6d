package bot

import (
	"context"

	"ebb/bot/schedule"
	"ebb/sessions"
)

// newTimer stores reminders as messages, which wake sessions as those of people do.
func (b *Bot) newTimer() *schedule.Runner {
	return schedule.NewRunner(schedule.RunnerConfig{
		Store: b.cfg.Schedules, Replica: b.leases.Owner(), Leads: b.leads, Now: b.now, Location: b.cfg.Location, Grace: b.cfg.StaleAfter,
		Settings: b.cfg.Planner.Settings, Metrics: b.cfg.Metrics,
		Language: b.languages.Choose,
		Serves:   placing{b}.serves,
		Refuse:   b.handler.RefuseSchedule,
		Accepted: b.wakeFor,
	})
}

func (b *Bot) leads(ctx context.Context) (bool, error) {
	if b.cfg.Elector == nil {
		return true, nil
	}
	l, err := b.cfg.Elector.Leader(ctx)
	return l.Replica == b.leases.Owner(), err
}

// wakeFor notes the lease of an accepted message, and wakes its session if it is this replica's.
func (b *Bot) wakeFor(a sessions.Accepted) {
	b.leases.Learn(a.Lease)
	if a.New && a.Lease.Owner == b.leases.Owner() {
		b.runner.Wake(a.Lease.Key)
	}
}
