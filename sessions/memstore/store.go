package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

var _ sessions.Store = (*Store)(nil)

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
	return &Store{t, leases{t}, outbox{t}, cards{t}, compactions{t}, inspection{t}, groupScopes{t}}
}

// Expire removes owner's heartbeat.
func (m inspection) Expire(owner sessions.ReplicaID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.beats, owner)
}

// EndWindows ends all windows of limits so long ago.
func (m inspection) EndWindows(ago time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for of, w := range m.windows {
		w.ends = time.Now().Add(-ago)
		m.windows[of] = w
	}
}

// FailFlush sets the consecutive failed flushes of a session.
func (m inspection) FailFlush(key sessions.Key, failures int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[key]; ok {
		s.state.FlushFailures = failures
	}
}

// Session implements sessions.Store.
func (m *Store) Session(_ context.Context, key sessions.Key) (sessions.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[key]
	if !ok {
		return sessions.Session{}, fmt.Errorf("reading a session: %w", sessions.ErrNotFound)
	}
	return s.readState(), nil
}

// Events lists the whole log of a session in order of arrival.
func (m inspection) Events(_ context.Context, key sessions.Key) []sessions.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := cmp.Or(m.sessions[key], m.lost[key])
	if s == nil {
		return nil
	}
	return copyAll(s.events)
}

// Accept implements sessions.Inbox.
func (m *Store) Accept(ctx context.Context, owner sessions.ReplicaID, key sessions.Key, msg sessions.Message) (sessions.Accepted, error) {
	return m.AcceptHere(ctx, owner, key, msg, sessions.PlaceQuery{})
}

// AcceptHere implements sessions.Inbox.
func (m *Store) AcceptHere(
	ctx context.Context, owner sessions.ReplicaID, key sessions.Key, msg sessions.Message, q sessions.PlaceQuery,
) (sessions.Accepted, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Accepted{}, err
	}
	if msg.ID == "" {
		return sessions.Accepted{}, fmt.Errorf("storing a message: it has no id to know it by: %w", sessions.ErrRefused)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.deleted[deletionOf(key, msg.ID)] && m.isElsewhere(key, q) {
		return sessions.Accepted{Elsewhere: true}, nil
	}
	s, lost := m.sessions[key], m.lost[key]
	if m.deleted[deletionOf(key, msg.ID)] {
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
		s = m.restore(lost, sessions.Lease{Key: key, Term: m.lastID + 1})
	default:
		s = &sessionRows{
			state: newState(key, msg), shown: map[int64]sessions.Shown{}, blobs: map[string]string{}, marks: map[int64]turnMark{},
			sent: map[int64]time.Time{},
		}
		s.state.Lease.Term = m.lastID // a deleted session that returns has another lease than before
		m.sessions[key] = s
	}
	s.state.Title = cmp.Or(msg.ConversationTitle, s.state.Title)
	s.learnStaff(msg.ConversationType)
	lease := sessions.Lease{Key: key}
	if !left {
		m.takeLease(s, owner)
		lease = s.state.Lease
	}
	m.lastID++
	s.events = append(s.events, &sessions.Event{
		ID: m.lastID, Key: key, Role: sessions.RoleUser, Content: msg.Text, SenderID: msg.SenderID,
		SenderNick: msg.SenderNick, MsgID: msg.ID, State: sessions.Pending, CreatedAt: time.Now(), Message: &msg,
	})
	s.sent[m.lastID] = sentAt(msg)
	if to := lease.Owner; to != owner {
		m.wakeListeners(to, key)
	}
	return sessions.Accepted{New: true, EventID: m.lastID, Lease: lease, Clash: m.staff.learn(msg)}, nil
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

// Beat implements sessions.Leaser.
func (m leases) Beat(_ context.Context, owner sessions.ReplicaID) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.beats[owner] = now
	m.noteBeat(owner)
	return now, nil
}

// Acquire implements sessions.Leaser.
func (m leases) Acquire(
	_ context.Context, key sessions.Key, owner sessions.ReplicaID,
) (sessions.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[key]
	if !ok {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", sessions.ErrNotFound)
	}
	m.takeLease(s, owner)
	if s.state.Lease.Owner != owner {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", sessions.ErrLeaseHeld)
	}
	return s.state.Lease, nil
}

// Release implements sessions.Leaser.
func (m leases) Release(_ context.Context, l sessions.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fencedSession(l)
	if err != nil {
		return fmt.Errorf("releasing a lease: %w", err)
	}
	s.state.Lease.Owner = ""
	m.wakeListeners("", "")
	return nil
}

// Rest implements sessions.Leaser. Owed flushes are kept elsewhere.
func (m leases) Rest(_ context.Context, owner sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var freed []sessions.Key
	for _, key := range keys {
		s := m.sessions[key]
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

// Resign implements sessions.Leaser.
func (m leases) Resign(_ context.Context, owner sessions.ReplicaID) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.beats, owner)
	m.standing = slices.DeleteFunc(m.standing, func(s replicaMark) bool { return s.id == owner })
	n := 0
	for _, s := range m.sessions {
		if s.state.Lease.Owner == owner {
			s.state.Lease.Owner = ""
			n++
		}
	}
	if n > 0 {
		m.wakeListeners("", "")
	}
	return n, nil
}

// Waiting implements sessions.Inbox.
func (m *Store) Waiting(_ context.Context, owner sessions.ReplicaID, limit int) ([]sessions.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := map[sessions.Key]time.Time{}
	wait := func(key sessions.Key, t time.Time) {
		if old, ok := since[key]; !ok || t.Before(old) {
			since[key] = t
		}
	}
	now := time.Now()
	for key, s := range m.sessions {
		if holder := s.state.Lease.Owner; holder != owner && m.isAlive(holder) {
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
		if m.sessions[key].state.Lease.Owner == owner {
			return 1
		}
		return 0
	}
	slices.SortFunc(keys, func(a, b sessions.Key) int {
		return cmp.Or(own(a)-own(b), since[a].Compare(since[b]), cmp.Compare(a, b))
	})
	return keys[:min(len(keys), max(limit, 0))], nil
}
