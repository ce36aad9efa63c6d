package slot

import (
	"sync"

	"ebb/sessions"
)

// Running signals new messages to the running turn of each session, and knows its lease. Its zero value is ready.
type Running struct {
	mu    sync.Mutex
	turns map[sessions.Key]*runningTurn
}

type runningTurn struct {
	arrived chan struct{}
	lease   sessions.Lease // its zero value: no message is marked yet
}

// Enter notes that a session's turn runs, until leave.
func (r *Running) Enter(key sessions.Key) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns == nil {
		r.turns = map[sessions.Key]*runningTurn{}
	}
	r.turns[key] = &runningTurn{arrived: make(chan struct{}, 1)}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.turns, key)
	}
}

// Hold notes the lease under which a turn marked its messages.
func (r *Running) Hold(l sessions.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.turns[l.Key]; t != nil {
		t.lease = l
	}
}

// Leases lists the leases of turns that marked their messages.
func (r *Running) Leases() []sessions.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	var leases []sessions.Lease
	for _, t := range r.turns {
		if t.lease != (sessions.Lease{}) {
			leases = append(leases, t.lease)
		}
	}
	return leases
}

// Note makes a session's running turn look at its waiting messages and its lease. It never blocks.
func (r *Running) Note(key sessions.Key) {
	select {
	case r.arrivals(key) <- struct{}{}:
	default: // signaled before, or no turn runs
	}
}

// arrivals is nil without a running turn.
func (r *Running) arrivals(key sessions.Key) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.turns[key]; t != nil {
		return t.arrived
	}
	return nil
}
