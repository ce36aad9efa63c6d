package sessions

import "context"

// Elector agrees on one of several replicas for what one is enough for. It agrees as well as heartbeats do: around a
// takeover two replicas may be taken for the leader, so nothing may hang upon there being one.
type Elector interface {
	// Mark notes how a replica stands, whose heart beats already, and wakes the others where that is new.
	Mark(ctx context.Context, owner ReplicaID, s Standing) error

	// Leader is the replica that leads: of those that live and do not drain one that is connected, else any; of several
	// the oldest. So a new replica takes the lead from none that has it.
	Leader(ctx context.Context) (Leader, error)
}

// Standing is what others need to know of a replica.
type Standing struct {
	Connected bool // it receives messages
	Draining  bool // it is about to stop, and leads no more
}

// Leader is the replica that leads, and whether it receives messages. The zero value says that nobody leads.
type Leader struct {
	Replica   ReplicaID
	Connected bool
}
