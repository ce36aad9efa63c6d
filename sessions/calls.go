package sessions

import (
	"errors"
	"time"
)

// The refusals of a promise of calls.
var (
	ErrNoCalls   = errors.New("the month's remaining calls of the chat platform's API do not reach for it")
	ErrCallShare = errors.New("the person has used their share of the month's calls of the chat platform's API")
)

// CallPromise asks for calls of a month for schedules.
type CallPromise struct {
	Robot    RobotCode
	Person   UserID
	Calls    int // further ones
	All, Own int // promised before: to all people, and to this one
}

// CallMonth counts a month's calls to the chat platform's open API, over all replicas.
type CallMonth struct {
	Calls          int64     // all APIs together
	Reported       int       // lowest level that a replica reported, see ebb/bot/dingtalk/calls; 0 is the highest
	ExhaustedUntil time.Time // the platform refuses calls until then; zero if not
	First          bool      // this caller began the month
	LowBefore      bool      // with First, the month before had a lower level or was exhausted
}

// ResumedCalls is the result of an operator's word that the platform permits calls again.
type ResumedCalls struct {
	Month        string    // like 2026-11
	RefusedUntil time.Time // end of the pause until now; zero without one
	Replies      int       // waiting replies tried at once
	Calls, Quota int64     // the month's; quota 0: no bound
}

// CallCount counts calls in a month or on a day.
type CallCount struct {
	Robot  RobotCode
	Period string // a month like 2026-11, or a day like 2026-11-23
	API    string // empty: all APIs together, in a month
	Calls  int64
	Quota  int64 // a month's, in the row of all APIs; 0: no bound
	// RefusedUntil ends the pause after a refusal, in a month's row of all APIs. It can be past; zero for none.
	RefusedUntil time.Time
}

// MonthOf returns the month, like 2026-11, of a day like 2026-11-23.
func MonthOf(day string) string { return day[:len("2006-01")] }
