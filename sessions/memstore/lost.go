package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

// DeleteRow deletes the row of a session, as an outsider can. Its log stays.
func (m *Store) DeleteRow(key sessions.Key) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s, ok := m.t.sessions[key]; ok {
		delete(m.t.sessions, key)
		m.t.lost[key] = s
	}
}

// Revive implements sessions.Inbox. Owed flushes are kept elsewhere.
func (m Inbox) Revive(_ context.Context, under []sessions.Lease) (turns []sessions.Key, err error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for key, s := range m.t.lost {
		term := s.turnTerm()
		at := slices.IndexFunc(under, func(l sessions.Lease) bool { return l.Key == key && (l.Owner == "" || l.Term == term) })
		free := sessions.Lease{Key: key, Term: max(m.t.lastID, term+1)}
		switch {
		case term == 0 && !s.waits():
		case term == 0:
			m.t.restore(s, free)
		case at < 0:
			turns = append(turns, key)
		case under[at].Owner == "":
			m.t.restore(s, free).fallen = term
		default:
			m.t.restore(s, under[at])
		}
	}
	return turns, nil
}

// restore begins the next generation behind the end of a log. It needs the mutex.
func (m *tables) restore(s *sessionRows, l sessions.Lease) *sessionRows {
	old := s.state
	s.state = newState(old.Key, sessions.Message{RobotCode: old.RobotCode, ConversationID: old.ConversationID, ConversationType: old.ConversationType})
	s.state.Title, s.state.Gen, s.state.Lease = old.Title, old.Gen+1, l
	s.state.LastSeq, s.state.BaseSeq, s.state.CompactedSeq = old.LastSeq, old.LastSeq, old.LastSeq
	s.state.ViewVersion = int(old.LastSeq) // no open turn has read that version
	s.state.FlushedSeq, s.state.Candidates = old.FlushedSeq, old.Candidates
	s.spentOn, s.fallen, s.cut, s.upkeep = "", 0, 0, upkeep{}
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			sum.Status = sessions.Closed
		}
	}
	delete(m.lost, old.Key)
	m.sessions[old.Key] = s
	return s
}

// turnTerm is the term of the newest turn with a waiting message; 0 for none.
func (s *sessionRows) turnTerm() (term int64) {
	for _, e := range s.waitingMessages() {
		term = max(term, s.marks[e.ID].attempt)
	}
	return term
}

// restoreTurn restores a session under the lease of its newest turn.
func (m *tables) restoreTurn(l sessions.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lost := m.lost[l.Key]; lost != nil && lost.turnTerm() == l.Term {
		m.restore(lost, l)
	}
}

func (s *sessionRows) waits() bool {
	return len(s.waitingMessages()) > 0 || slices.ContainsFunc(s.outbox, func(o *outboxRow) bool { return !o.settled })
}
