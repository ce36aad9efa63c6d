package upkeep

import (
	"context"
	"time"

	"ebb/memory"
	"ebb/sessions/periodic"
)

const releaseInterval = time.Minute

// Tasks run concurrently, since each may wait for a slow model.
func (u *Worker) Tasks() []periodic.Task {
	tasks := []periodic.Task{
		{Interval: backgroundInterval, Ready: u.leases.Trusted, Do: u.flushOverdue},
		{Interval: releaseInterval, Ready: u.leases.Trusted, Do: u.releaseIdle, Failure: "Failed to release idle leases"},
	}
	if u.cfg.Requests != nil {
		tasks = append(tasks, periodic.Task{
			Interval: requestInterval, Ready: u.leases.Trusted, Do: requests{u.cfg.Requests, u.store, u.leases, u.slots, u.Compact}.compactAll, Failure: "Failed to execute requested compactions",
		})
	}
	if u.cfg.Keeper != nil {
		tidy := &tidyState{pauses: map[memory.FactGroup]groupPause{}, logged: map[memory.OverfullScope]time.Time{}}
		tasks = append(tasks, periodic.Task{
			Interval: backgroundInterval, Ready: u.leases.Trusted, Do: u.indexBacklog, Failure: "Messages and memories could not be indexed",
		}, periodic.Task{
			Interval: backgroundInterval,
			Ready:    func() bool { return u.leases.Trusted() && time.Since(tidy.tidied) >= tidyInterval },
			Leads:    func(ctx context.Context) (bool, error) { return u.cfg.Keeper.IsLeader(ctx, u.leases.Owner()) },
			Do:       func(ctx context.Context) error { u.tidy(ctx, tidy); return nil },
			Failure:  "Memory is not tidied up: the first replica is not known",
		})
	}
	if u.cfg.DigestAt != "" {
		tasks = append(tasks, periodic.Task{
			Interval: digestInterval, AtOnce: true, Ready: u.leases.Trusted, Do: u.writeDigests, Failure: "Failed to list due digests",
		})
	}
	return tasks
}
