package sessions

import (
	"context"
	"errors"
	"time"
)

// ScheduleState is the state of a schedule.
type ScheduleState string

// The states of a schedule.
const (
	ScheduleActive    ScheduleState = "active"
	ScheduleDone      ScheduleState = "done"      // it has no further time
	ScheduleCancelled ScheduleState = "cancelled" // a person ended it
	ScheduleRefused   ScheduleState = "refused"   // access rules or the storage refused its message
)

// Schedule is a message that a session gets at set times, once or repeatedly.
type Schedule struct {
	Key   Key
	ID    int64 // from 1 on in each conversation, and never used again
	Kind  ScheduleKind
	State ScheduleState
	DueAt time.Time // the next time; of an ended schedule the last one
	Spec  string    // all times, as package bot/schedule/when writes them
	Text  string
	// Creator is the message that the schedule repeats, with the ids and the nick of its creator and the conversation alone. An active
	// one that is due while its webhook is valid has that too.
	Creator Message
	// Origin is the [OriginOf] the command or the tool call that set it: a repeated one sets no second schedule.
	Origin    string
	CreatedAt time.Time
	SettledAt time.Time // time of its end; zero for an active schedule
	Fault     error     // the stored creator is unreadable, and Creator is zero
}

// WebhookMargin is the time before the end of a webhook from which no schedule counts on it.
const WebhookMargin = 5 * time.Minute

// OutstandingSchedules are active schedules with the same times.
type OutstandingSchedules struct {
	Spec     string    // empty: single times, each with one
	DueAt    time.Time // the next time
	All, Own int       // those that all people set, and one of them
}

// OriginOf names the command or the tool call of a message; call is empty for a command. An erasure of the message finds
// its schedules by this name.
func OriginOf(message MessageID, call string) string {
	origin := "message " + string(message)
	if call != "" {
		origin += ", call " + call
	}
	return origin
}

// Lead is the line before the message's words in its event.
func (s Scheduled) Lead() string {
	word := "定时"
	switch {
	case s.Kind == Expired && s.Lang == "en":
		word = "approval expired"
	case s.Kind == Expired:
		word = "批准过期"
	case s.Lang == "en":
		word = "scheduled"
	}
	return "[" + word + " " + s.DueAt.Format("2006-01-02 15:04") + "]\n"
}

// The bounds of active schedules.
const (
	MaxSchedules       = 50 // per conversation
	MaxPersonSchedules = 30 // for one person with one robot
	// LeftSchedules is a fifth of a conversation's. A person with as many leaves the last ones to the others.
	LeftSchedules = MaxSchedules / 5
)

// The refusals of a further schedule.
var (
	ErrConversationSchedules = errors.New("the conversation has too many schedules")
	ErrPersonSchedules       = errors.New("the person has too many schedules")
	ErrLeftSchedules         = errors.New("the last places of the conversation are for people with fewer schedules")
)

// Schedules keeps schedules. The transaction that moves a schedule to its next time stores the message. So each time has one
// message, whatever replica stores it.
type Schedules interface {
	// AddSchedule stores a schedule of the lease's session, and returns it with its number. A known origin returns the stored
	// one. It returns [ErrConversationSchedules], [ErrPersonSchedules] or [ErrLeftSchedules] beyond a bound.
	AddSchedule(ctx context.Context, l Lease, s Schedule) (Schedule, error)
	// ActiveSchedules lists the active schedules of all sessions of a session's conversation, the next due first.
	ActiveSchedules(ctx context.Context, key Key) ([]Schedule, error)
	// Schedule returns a schedule of the session's conversation in any state, or [ErrNotFound]. Its session may be another one.
	Schedule(ctx context.Context, key Key, id int64) (Schedule, error)
	// CancelSchedule ends an active schedule. It returns [ErrNotFound] without one.
	CancelSchedule(ctx context.Context, key Key, id int64) (Schedule, error)
	// MoveSchedule changes the times of an active schedule, under the lease of the session that asks for it. It returns
	// [ErrNotFound] without one.
	MoveSchedule(ctx context.Context, l Lease, s Schedule, spec string, due time.Time) (Schedule, error)

	// ScheduleOfOrigin returns the schedule of the session that an origin set, in any state, or [ErrNotFound].
	ScheduleOfOrigin(ctx context.Context, key Key, origin string) (Schedule, error)
	// OutstandingSchedules counts the active schedules of a robot that are due before a time: all, and those of a person. A single one that
	// has its creator's webhook, up to [WebhookMargin] before its end, is left out: it takes no call.
	OutstandingSchedules(ctx context.Context, robot RobotCode, by UserID, until time.Time) ([]OutstandingSchedules, error)
	// LoseSchedule counts a message of a schedule whose person or conversation the platform does not know any more. After most
	// of them in a row the schedule ends as [ScheduleRefused]. It returns [ErrNotFound] without the schedule.
	LoseSchedule(ctx context.Context, key Key, id int64, most int) (ended bool, err error)
	// ReachSchedule notes that a message of a schedule arrived.
	ReachSchedule(ctx context.Context, key Key, id int64) error

	// DueSchedules lists at most limit active schedules whose time has come, the oldest first. They follow after in the order of
	// DueAt, Key and ID; the zero Schedule is before all.
	DueSchedules(ctx context.Context, after Schedule, limit int) ([]Schedule, error)
	// FireSchedule moves a schedule from its DueAt to next, or ends it when next is zero, and stores m as [Inbox].Accept does.
	// It returns [ErrConflict], and writes nothing, when the schedule is not active at DueAt any more.
	FireSchedule(ctx context.Context, owner ReplicaID, s Schedule, next time.Time, m Message) (Accepted, error)
	// PostponeSchedule moves a schedule from its DueAt to a later time without a message. It returns [ErrConflict] as
	// FireSchedule does.
	PostponeSchedule(ctx context.Context, s Schedule, until time.Time) error
	// RefuseSchedule ends a schedule that is active at its DueAt as [ScheduleRefused]. It returns [ErrConflict] as FireSchedule
	// does.
	RefuseSchedule(ctx context.Context, s Schedule) error
}
