package sessions

import "context"

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
