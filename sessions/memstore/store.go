package memstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ebb/sessions"
)

// Store joins a store for each aggregate over the same tables. Its own methods are for tests. Its clock is time.Now, which a synctest
// bubble stops.
type Store struct {
	t *tables

	Inbox       Inbox
	Turns       Turns
	Sessions    Sessions
	Outbox      Outbox
	Cards       Cards
	Leases      Leases
	Replicas    Replicas
	Compactions Compactions
	Jobs        Jobs
	Ledger      Ledger
	Limits      Limits
	Scopes      Scopes
	Withheld    Withheld
	Erasure     Erasure
	Approvals   Approvals
}

// The stores by aggregate, each documented at its port in package sessions.
type (
	// Inbox makes messages durable.
	Inbox struct{ t *tables }
	// Turns takes waiting messages and stores the results of turns.
	Turns struct{ t *tables }
	// Sessions keeps the state of sessions.
	Sessions struct{ t *tables }
	// Outbox holds replies.
	Outbox struct{ t *tables }
	// Cards keeps the cards of conversations.
	Cards struct{ t *tables }
	// Leases are the rights of replicas to write sessions.
	Leases struct{ t *tables }
	// Replicas knows the running replicas.
	Replicas struct{ t *tables }
	// Compactions changes the views of sessions.
	Compactions struct{ t *tables }
	// Jobs keeps running compactions.
	Jobs struct{ t *tables }
	// Ledger keeps the costs of model calls.
	Ledger struct{ t *tables }
	// Limits counts turns and tokens.
	Limits struct{ t *tables }
	// Scopes keeps the scopes of groups.
	Scopes struct{ t *tables }
	// Withheld marks rows that models refuse.
	Withheld struct{ t *tables }
	// Erasure removes content from sessions.
	Erasure struct{ t *tables }
	// Approvals keeps calls of tools that wait for a decision.
	Approvals struct{ t *tables }
)

// Ports returns the stores that a bot uses.
func (m *Store) Ports() sessions.Stores {
	return sessions.Stores{
		Inbox:       m.Inbox,
		Turns:       m.Turns,
		Sessions:    m.Sessions,
		Outbox:      m.Outbox,
		Cards:       m.Cards,
		Leases:      m.Leases,
		Compactions: m.Compactions,
		Jobs:        m.Jobs,
		Ledger:      m.Ledger,
		Limits:      m.Limits,
		Scopes:      m.Scopes,
		Withheld:    m.Withheld,
	}
}

// New makes an empty store with leases of ttl after a heartbeat; 0 stands for 5 s.
func New(ttl time.Duration) *Store {
	t := &tables{
		ttl:       cmp.Or(ttl, 5*time.Second),
		beats:     map[sessions.ReplicaID]time.Time{},
		sessions:  map[sessions.Key]*sessionRows{},
		lost:      map[sessions.Key]*sessionRows{},
		deleted:   map[deletedMessage]bool{},
		staff:     staffIDs{},
		listeners: map[*wakeListener]bool{},
		windows:   map[limitSubject]limitWindow{},
		gone:      map[sessions.Key]*sessionRows{},
		cardRows:  map[cardID]*cardRow{},
		scopes:    map[sessions.Key]sessions.Scope{},
	}
	return &Store{t, Inbox{t}, Turns{t}, Sessions{t}, Outbox{t}, Cards{t}, Leases{t}, Replicas{t}, Compactions{t}, Jobs{t}, Ledger{t}, Limits{t}, Scopes{t}, Withheld{t}, Erasure{t}, Approvals{t}}
}

// Expire removes owner's heartbeat.
func (m *Store) Expire(owner sessions.ReplicaID) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	delete(m.t.beats, owner)
}

// EndWindows ends all windows of limits so long ago.
func (m *Store) EndWindows(ago time.Duration) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for of, w := range m.t.windows {
		w.ends = time.Now().Add(-ago)
		m.t.windows[of] = w
	}
}

// FailFlush sets the consecutive failed flushes of a session.
func (m *Store) FailFlush(key sessions.Key, failures int) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s, ok := m.t.sessions[key]; ok {
		s.state.FlushFailures = failures
	}
}

// Session implements sessions.States.
func (m Sessions) Session(_ context.Context, key sessions.Key) (sessions.Session, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	if !ok {
		return sessions.Session{}, fmt.Errorf("reading a session: %w", sessions.ErrNotFound)
	}
	return s.readState(), nil
}

// Events lists the whole log of a session in order of arrival.
func (m *Store) Events(_ context.Context, key sessions.Key) []sessions.Event {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s := cmp.Or(m.t.sessions[key], m.t.lost[key])
	if s == nil {
		return nil
	}
	return copyAll(s.events)
}
