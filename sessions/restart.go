package sessions

import (
	"context"
	"time"
)

// Ending is the end of a process.
type Ending string

// The endings.
const (
	Running Ending = ""
	Clean   Ending = "clean"  // stopped in order
	Killed  Ending = "killed" // heartbeat ended without a stop
)

// Restart is the account of one process from start to end.
type Restart struct {
	Replica   ReplicaID
	StartedAt time.Time
	StoppedAt time.Time // last heartbeat of a killed process; zero while it runs
	Ending    Ending
	Figures   RestartFigures
}

// RestartFigures are a process's own counts. Those of a killed process are the last ones written.
type RestartFigures struct {
	Answered    int64 `json:"answered"`    // turns committed
	Drained     int64 `json:"drained"`     // turns that finished during the stop
	Flushed     int64 `json:"flushed"`     // sessions flushed at the stop, with or without facts
	Debt        int64 `json:"debt"`        // sessions that owe a flush since the stop
	Resumed     int64 `json:"resumed"`     // messages and replies taken over
	Redelivered int64 `json:"redelivered"` // messages
	Doubled     int64 `json:"doubled"`     // replies sent again that may have arrived, see [Outgoing.Maybe]
	Lost        int64 `json:"lost"`        // acknowledged messages missing from the log: always 0
}

// Reporter stores the accounts of processes.
type Reporter interface {
	// OpenRestart begins the account of a process.
	OpenRestart(ctx context.Context, owner ReplicaID) error

	// KeepRestart writes the figures so far, and the ending if known.
	KeepRestart(ctx context.Context, owner ReplicaID, ending Ending, f RestartFigures) error

	// EndedRestarts closes the accounts of processes without a heartbeat. It returns those closed since the last call,
	// each to one caller only.
	EndedRestarts(ctx context.Context) ([]Restart, error)

	// Gone counts the listed messages that are missing from the log although their session was not deleted.
	Gone(ctx context.Context, stored []Stored) (int64, error)
}

// Stored is an accepted message and its age.
type Stored struct {
	Key     Key
	EventID int64
	Age     time.Duration
}

// Elector elects the replica for work that one replica suffices for. Around a takeover two replicas may consider
// themselves the leader, so nothing may depend on uniqueness.
type Elector interface {
	// Mark stores the status of a live replica, and notifies the others of a change.
	Mark(ctx context.Context, owner ReplicaID, s ReplicaStatus) error

	// Leader is the leading replica: alive, not draining, connected if any is, then the oldest. A new replica never
	// takes over from a live leader.
	Leader(ctx context.Context) (Leader, error)
}

// ReplicaStatus is the status that other replicas need.
type ReplicaStatus struct {
	Connected bool // receives messages
	Draining  bool // stops soon and no longer leads
}

// Leader is the leading replica. The zero value is no leader.
type Leader struct {
	Replica   ReplicaID
	Connected bool
}
