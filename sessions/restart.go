package sessions

import (
	"context"
	"time"
)

// Ending is how a process ended.
type Ending string

// The endings.
const (
	Running Ending = ""
	Clean   Ending = "clean"  // it stopped as it was told to
	Killed  Ending = "killed" // its heart stopped without a word
)

// Restart is the account of one process, from its start to its end.
type Restart struct {
	Replica   ReplicaID
	StartedAt time.Time
	StoppedAt time.Time // of one that was killed: its last heartbeat; zero while it runs
	Ending    Ending
	Figures   RestartFigures
}

// RestartFigures are what a process counts of itself. Of one that was killed they are as it wrote them last.
type RestartFigures struct {
	Answered    int64 // turns committed
	Drained     int64 // turns that were in hand at the stop and finished
	Flushed     int64 // sessions flushed at the stop, those with nothing to save too
	Debt        int64 // sessions whose flush is owed since the stop
	Resumed     int64 // messages whose turn broke in another process, and replies that another left unsent, that it went on with
	Redelivered int64 // messages that came again
	Doubled     int64 // replies sent again that may have arrived before: see [Outgoing.Maybe]
	Lost        int64 // messages that it acknowledged and that are not in the log: always 0
}

// Reporter keeps the accounts of processes.
type Reporter interface {
	// OpenRestart begins the account of a process.
	OpenRestart(ctx context.Context, owner ReplicaID) error

	// KeepRestart writes the figures of a process so far, and how it ended, if it has.
	KeepRestart(ctx context.Context, owner ReplicaID, ending Ending, f RestartFigures) error

	// EndedRestarts closes the accounts of processes whose hearts stopped, and returns those closed since: each one once,
	// to one of all that ask.
	EndedRestarts(ctx context.Context) ([]Restart, error)

	// Gone counts the messages of a list that are not in the log though nobody deleted their session.
	Gone(ctx context.Context, stored []Stored) (int64, error)
}

// Stored is a message that was accepted, and how long ago.
type Stored struct {
	Key     Key
	EventID int64
	Age     time.Duration
}
