package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// Accept implements sessions.Inbox.
func (m Inbox) Accept(ctx context.Context, owner sessions.ReplicaID, key sessions.Key, msg sessions.Message) (sessions.Accepted, error) {
	return m.AcceptHere(ctx, owner, key, msg, nil)
}

// AcceptHere implements sessions.Inbox.
func (m Inbox) AcceptHere(
	ctx context.Context, owner sessions.ReplicaID, key sessions.Key, msg sessions.Message, among []sessions.Key,
) (sessions.Accepted, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Accepted{}, err
	}
	if msg.ID == "" {
		return sessions.Accepted{}, fmt.Errorf("storing a message: it has no id to know it by: %w", sessions.ErrRefused)
	}
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if !m.t.deleted[deletionOf(key, msg.ID)] && m.t.isElsewhere(key, msg, among) {
		return sessions.Accepted{Elsewhere: true}, nil
	}
	s, lost := m.t.sessions[key], m.t.lost[key]
	if m.t.deleted[deletionOf(key, msg.ID)] {
		a := sessions.Accepted{Lease: sessions.Lease{Key: key}}
		if s != nil {
			a.Lease = s.state.Lease
		}
		return a, nil
	}
	if log := cmp.Or(s, lost); log != nil {
		for _, e := range log.events {
			if e.Role == sessions.RoleUser && e.MsgID == msg.ID {
				if s == nil {
					return sessions.Accepted{EventID: e.ID, Lease: sessions.Lease{Key: key}}, nil
				}
				return sessions.Accepted{EventID: e.ID, Lease: s.state.Lease}, nil
			}
		}
	}
	left := lost != nil && lost.turnTerm() > 0 // to the turn
	switch {
	case s != nil:
	case left:
		s = lost
	case lost != nil:
		s = m.t.restore(lost, sessions.Lease{Key: key, Term: m.t.lastID + 1})
	default:
		s = &sessionRows{
			state: newState(key, msg), shown: map[int64]sessions.Shown{}, blobs: map[string]string{}, marks: map[int64]turnMark{},
			sent: map[int64]time.Time{},
		}
		s.state.Lease.Term = m.t.lastID // a deleted session that returns has another lease than before
		m.t.sessions[key] = s
	}
	s.state.Title = cmp.Or(msg.ConversationTitle, s.state.Title)
	s.learnStaff(msg.ConversationType)
	lease := sessions.Lease{Key: key}
	if !left {
		m.t.takeLease(s, owner)
		lease = s.state.Lease
	}
	m.t.lastID++
	s.events = append(s.events, &sessions.Event{
		ID: m.t.lastID, Key: key, Role: sessions.RoleUser, Content: msg.Text, SenderID: msg.SenderID,
		SenderNick: msg.SenderNick, MsgID: msg.ID, State: sessions.Pending, CreatedAt: time.Now(), Message: &msg,
	})
	s.sent[m.t.lastID] = sentAt(msg)
	if to := lease.Owner; to != owner {
		m.t.wakeListeners(to, key)
	}
	return sessions.Accepted{New: true, EventID: m.t.lastID, Lease: lease, Clash: m.t.staff.learn(msg)}, nil
}

// A group stays one, and shows nothing that a private chat had pinned.
func (s *sessionRows) learnStaff(kind sessions.ConversationType) {
	switch was := s.state.ConversationType; {
	case kind == sessions.Unknown || kind == was || was == sessions.Group:
		return
	case was == sessions.Private:
		s.state.Pinned, s.state.PinnedDue = "", true
		s.state.ViewVersion++
	}
	s.state.ConversationType = kind
}

// The time of receipt stands for an unknown or impossible one.
func sentAt(msg sessions.Message) time.Time {
	switch off := time.Since(msg.SentAt); {
	case off >= -time.Hour && off <= time.Hour:
		return msg.SentAt
	case msg.ReceivedAt.IsZero():
		return time.Now()
	}
	return msg.ReceivedAt
}

func newState(key sessions.Key, msg sessions.Message) sessions.Session {
	now := time.Now()
	return sessions.Session{
		Key: key, RobotCode: msg.RobotCode, ConversationID: msg.ConversationID, ConversationType: msg.ConversationType,
		LastActiveAt: now, CreatedAt: now, FlushEpoch: -1, CalibrationFactor: 1, PinnedDue: true, Lease: sessions.Lease{Key: key},
	}
}

func (m *tables) takeLease(s *sessionRows, owner sessions.ReplicaID) {
	l := &s.state.Lease
	if l.Owner != owner && !m.isAlive(l.Owner) {
		if l.Owner != "" {
			s.fallen = l.Term
		}
		l.Owner, l.Term = owner, l.Term+1
	}
}

// Beat implements sessions.Leases.
func (m Leases) Beat(_ context.Context, owner sessions.ReplicaID) (time.Time, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	now := time.Now()
	m.t.beats[owner] = now
	m.noteBeat(owner)
	return now, nil
}

// Acquire implements sessions.Leases.
func (m Leases) Acquire(
	_ context.Context, key sessions.Key, owner sessions.ReplicaID,
) (sessions.Lease, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	if !ok {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", sessions.ErrNotFound)
	}
	m.t.takeLease(s, owner)
	if s.state.Lease.Owner != owner {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", sessions.ErrLeaseHeld)
	}
	return s.state.Lease, nil
}

// Release implements sessions.Leases.
func (m Leases) Release(_ context.Context, l sessions.Lease) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, err := m.t.fencedSession(l)
	if err != nil {
		return fmt.Errorf("releasing a lease: %w", err)
	}
	s.state.Lease.Owner = ""
	m.t.wakeListeners("", "")
	return nil
}

// Rest implements sessions.Leases. Owed flushes are kept elsewhere.
func (m Leases) Rest(_ context.Context, owner sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	var freed []sessions.Key
	for _, key := range keys {
		s := m.t.sessions[key]
		if s == nil || s.state.Lease.Owner != owner {
			freed = append(freed, key)
			continue
		}
		if s.job != nil {
			continue
		}
		quiet := time.Since(s.state.LastActiveAt)
		if quiet < rest || s.state.FlushedSeq < s.state.LastSeq && quiet < unflushed {
			continue
		}
		if slices.ContainsFunc(s.events, func(e *sessions.Event) bool { return e.State == sessions.Pending }) ||
			slices.ContainsFunc(s.outbox, func(o *outboxRow) bool { return !o.settled }) {
			continue
		}
		s.state.Lease.Owner = ""
		freed = append(freed, key)
	}
	return freed, nil
}

// Resign implements sessions.Leases.
func (m Leases) Resign(_ context.Context, owner sessions.ReplicaID) (int, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	delete(m.t.beats, owner)
	m.t.standing = slices.DeleteFunc(m.t.standing, func(s replicaMark) bool { return s.id == owner })
	n := 0
	for _, s := range m.t.sessions {
		if s.state.Lease.Owner == owner {
			s.state.Lease.Owner = ""
			n++
		}
	}
	if n > 0 {
		m.t.wakeListeners("", "")
	}
	return n, nil
}

// Waiting implements sessions.Inbox.
func (m Inbox) Waiting(_ context.Context, owner sessions.ReplicaID, limit int) ([]sessions.Key, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	since := map[sessions.Key]time.Time{}
	wait := func(key sessions.Key, t time.Time) {
		if old, ok := since[key]; !ok || t.Before(old) {
			since[key] = t
		}
	}
	now := time.Now()
	for key, s := range m.t.sessions {
		if holder := s.state.Lease.Owner; holder != owner && m.t.isAlive(holder) {
			continue
		}
		for _, e := range s.events {
			if e.State == sessions.Pending {
				wait(key, e.CreatedAt)
			}
		}
		for _, o := range s.outbox {
			if !o.settled && (!o.NextAt.After(now) || o.sending && o.sender != owner) {
				wait(key, o.Created)
			}
		}
	}
	var keys []sessions.Key
	for key := range since {
		keys = append(keys, key)
	}
	own := func(key sessions.Key) int {
		if m.t.sessions[key].state.Lease.Owner == owner {
			return 1
		}
		return 0
	}
	slices.SortFunc(keys, func(a, b sessions.Key) int {
		return cmp.Or(own(a)-own(b), since[a].Compare(since[b]), cmp.Compare(a, b))
	})
	return keys[:min(len(keys), max(limit, 0))], nil
}
