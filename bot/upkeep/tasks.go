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
	tidy := &tidyState{pauses: map[memory.FactGroup]groupPause{}, logged: map[memory.OverfullScope]time.Time{}}
	tasks := []periodic.Task{
		{Interval: backgroundInterval, Ready: u.shared.Leases.Trusted, Do: func(ctx context.Context) error {
			u.WakeBacklogs(ctx)
			return u.overdue.flushAll(ctx)
		}},
		{Interval: releaseInterval, Ready: u.shared.Leases.Trusted, Do: u.overdue.releaseIdle, Failure: "Failed to release idle leases"},
		{
			Interval: requestInterval, Ready: u.shared.Leases.Trusted, Do: requests{u.opts.Requests, u.stores.Sessions, u.stores.Compactions, u.shared, u.slots, u.Compact}.compactAll, Failure: "Failed to execute requested compactions",
		},
		{Interval: backgroundInterval, Ready: u.shared.Leases.Trusted, Do: u.tidier.indexBacklog, Failure: "Messages and memories could not be indexed"},
		{
			Interval: backgroundInterval,
			Ready:    func() bool { return u.shared.Leases.Trusted() && time.Since(tidy.tidied) >= tidyInterval },
			Leads:    u.opts.Leads,
			Do:       func(ctx context.Context) error { u.tidier.tidy(ctx, tidy); return nil },
			Failure:  "Memory is not tidied up: the first replica is not known",
		},
	}
	if u.opts.DigestAt != "" {
		tasks = append(tasks, periodic.Task{
			Interval: digestInterval, AtOnce: true, Ready: u.shared.Leases.Trusted, Do: u.digester.writeDigests, Failure: "Failed to list due digests",
		})
	}
	return tasks
}
