package off

import (
	"context"
	"time"

	"ebb/sessions"
)

// Requests has no requested compactions.
type Requests struct{}

// CompactionRequests implements [sessions.CompactionRequests].
func (Requests) CompactionRequests(context.Context, sessions.ReplicaID, int) ([]sessions.CompactionRequest, error) {
	return nil, nil
}

// StartRequest implements [sessions.CompactionRequests].
func (Requests) StartRequest(context.Context, sessions.Lease) (int, error) {
	return 0, sessions.ErrNotFound
}

// ReturnRequest implements [sessions.CompactionRequests].
func (Requests) ReturnRequest(context.Context, sessions.Lease, int) error { return nil }

// EndRequest implements [sessions.CompactionRequests].
func (Requests) EndRequest(context.Context, sessions.Lease, int) error { return nil }

// Reporter keeps no restart figures: they are logged alone.
type Reporter struct{}

// OpenRestart implements [sessions.Reporter].
func (Reporter) OpenRestart(context.Context, sessions.ReplicaID) error { return nil }

// KeepRestart implements [sessions.Reporter].
func (Reporter) KeepRestart(context.Context, sessions.ReplicaID, sessions.Ending, sessions.RestartFigures) error {
	return nil
}

// EndedRestarts implements [sessions.Reporter].
func (Reporter) EndedRestarts(context.Context) ([]sessions.Restart, error) { return nil, nil }

// Gone implements [sessions.Reporter].
func (Reporter) Gone(context.Context, []sessions.Stored) (int64, error) { return 0, nil }

// Schedules are none, and none can be set.
type Schedules struct{}

// AddSchedule implements [sessions.Schedules].
func (Schedules) AddSchedule(context.Context, sessions.Lease, sessions.Schedule) (sessions.Schedule, error) {
	return sessions.Schedule{}, ErrOff
}

// ActiveSchedules implements [sessions.Schedules].
func (Schedules) ActiveSchedules(context.Context, sessions.Key) ([]sessions.Schedule, error) {
	return nil, nil
}

// Schedule implements [sessions.Schedules].
func (Schedules) Schedule(context.Context, sessions.Key, int64) (sessions.Schedule, error) {
	return sessions.Schedule{}, sessions.ErrNotFound
}

// CancelSchedule implements [sessions.Schedules].
func (Schedules) CancelSchedule(context.Context, sessions.Key, int64) (sessions.Schedule, error) {
	return sessions.Schedule{}, sessions.ErrNotFound
}

// MoveSchedule implements [sessions.Schedules].
func (Schedules) MoveSchedule(context.Context, sessions.Lease, sessions.Schedule, string, time.Time) (sessions.Schedule, error) {
	return sessions.Schedule{}, sessions.ErrNotFound
}

// ScheduleOfOrigin implements [sessions.Schedules].
func (Schedules) ScheduleOfOrigin(context.Context, sessions.Key, string) (sessions.Schedule, error) {
	return sessions.Schedule{}, sessions.ErrNotFound
}

// OutstandingSchedules implements [sessions.Schedules].
func (Schedules) OutstandingSchedules(context.Context, sessions.RobotCode, sessions.UserID, time.Time) ([]sessions.OutstandingSchedules, error) {
	return nil, nil
}

// LoseSchedule implements [sessions.Schedules].
func (Schedules) LoseSchedule(context.Context, sessions.Key, int64, int) (bool, error) {
	return false, sessions.ErrNotFound
}

// ReachSchedule implements [sessions.Schedules].
func (Schedules) ReachSchedule(context.Context, sessions.Key, int64) error { return nil }

// DueSchedules implements [sessions.Schedules].
func (Schedules) DueSchedules(context.Context, sessions.Schedule, int) ([]sessions.Schedule, error) {
	return nil, nil
}

// FireSchedule implements [sessions.Schedules].
func (Schedules) FireSchedule(context.Context, sessions.ReplicaID, sessions.Schedule, time.Time, sessions.Message) (sessions.Accepted, error) {
	return sessions.Accepted{}, sessions.ErrConflict
}

// PostponeSchedule implements [sessions.Schedules].
func (Schedules) PostponeSchedule(context.Context, sessions.Schedule, time.Time) error {
	return sessions.ErrConflict
}

// RefuseSchedule implements [sessions.Schedules].
func (Schedules) RefuseSchedule(context.Context, sessions.Schedule) error {
	return sessions.ErrConflict
}

// Approvals are none. A turn whose call needs one fails: no tool of these programs does.
type Approvals struct{}

// WaitingApprovals implements [sessions.Approvals].
func (Approvals) WaitingApprovals(context.Context, sessions.Key) ([]sessions.Approval, int64, error) {
	return nil, 0, ErrOff
}

// FindApprovals implements [sessions.Approvals].
func (Approvals) FindApprovals(context.Context, sessions.Key, sessions.ApprovalQuery) ([]sessions.FoundApproval, error) {
	return nil, nil
}

// DecideApprovals implements [sessions.Approvals].
func (Approvals) DecideApprovals(context.Context, sessions.Lease, sessions.Decision) ([]sessions.Approval, error) {
	return nil, nil
}

// DueApprovals implements [sessions.Approvals].
func (Approvals) DueApprovals(context.Context, sessions.Approval, int) ([]sessions.Approval, error) {
	return nil, nil
}

// CountApprovals implements [sessions.Approvals].
func (Approvals) CountApprovals(context.Context) (int, error) { return 0, nil }

// ExpireApproval implements [sessions.Approvals].
func (Approvals) ExpireApproval(context.Context, sessions.ReplicaID, sessions.Approval, func(sessions.Message) sessions.Message) (sessions.Accepted, error) {
	return sessions.Accepted{}, sessions.ErrConflict
}
