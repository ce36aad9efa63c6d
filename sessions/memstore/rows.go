package memstore

import (
	"cmp"
	"math"
	"slices"
	"time"

	"ebb/sessions"
)

func newState(key sessions.Key, msg sessions.Message) sessions.Session {
	now := time.Now()
	return sessions.Session{
		Key: key, RobotCode: msg.RobotCode, ConversationID: msg.ConversationID, ConversationType: msg.ConversationType,
		LastActiveAt: now, CreatedAt: now, FlushEpoch: -1, CalibrationFactor: 1, PinnedDue: true, Lease: sessions.Lease{Key: key},
	}
}

func (s *sessionRows) readState() sessions.Session {
	st := s.state
	if s.spentOn != currentDay() {
		st.SpentToday = 0
	}
	return st
}

func (s *sessionRows) shownEvent(e *sessions.Event) sessions.Event {
	v := *e
	if sh, ok := s.shown[e.Seq]; ok {
		v.Content, v.Tokens, v.Blob = sh.Text, sh.Tokens, sh.Blob
	}
	return v
}

// eventSpan is the placed events (from, through].
func (s *sessionRows) eventSpan(from, through int64) []*sessions.Event {
	var events []*sessions.Event
	for _, e := range s.events {
		if e.Seq > max(from, 0) && e.Seq <= through {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b *sessions.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return events
}

func (s *sessionRows) eventAt(seq int64) *sessions.Event {
	for _, e := range s.events {
		if seq > 0 && e.Seq == seq {
			return e
		}
	}
	return nil
}

func currentDay() string { return time.Now().UTC().Format(time.DateOnly) }

func (s *sessionRows) addSpending(one sessions.Spending) {
	if s.spentOn != currentDay() {
		s.spentOn, s.state.SpentToday = currentDay(), 0
	}
	if one.Usage = boundedSum(one.Usage); math.IsNaN(one.Cost) || math.IsInf(one.Cost, 0) {
		one.Cost = 0
	}
	if one.Usage == (sessions.Usage{}) && one.Cost == 0 {
		return
	}
	s.state.Usage = s.state.Usage.Add(one.Usage)
	if one.Kind.IsUpkeep() {
		s.state.SpentToday += one.Usage.Prompt + one.Usage.Completion
	}
	if s.spent == nil {
		s.spent = map[spentKind]sessions.Spending{}
	}
	of := spentKind{s.spentOn, one.Kind}
	s.spent[of] = s.spent[of].Add(one)
}

// Columns of a table bound a usage too.
func boundedSum(u sessions.Usage) sessions.Usage {
	bound := func(n int) int { return min(max(n, 0), math.MaxInt32) }
	return sessions.Usage{Prompt: bound(u.Prompt), Cached: bound(u.Cached), Completion: bound(u.Completion)}
}

// Marked messages come first, then the others as they were sent.
func (s *sessionRows) waitingMessages() []*sessions.Event {
	var waiting []*sessions.Event
	for _, e := range s.events {
		if e.State == sessions.Pending {
			waiting = append(waiting, e)
		}
	}
	fresh := func(e *sessions.Event) int {
		if s.marks[e.ID].attempt == 0 {
			return 1
		}
		return 0
	}
	slices.SortFunc(waiting, func(a, b *sessions.Event) int {
		return cmp.Or(fresh(a)-fresh(b), s.sent[a.ID].Compare(s.sent[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	return waiting
}

func isOther(e *sessions.Event, id int64) int {
	if e.ID == id {
		return 0
	}
	return 1
}

func (s *sessionRows) viewTokens() int {
	n := 0
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			n += sum.Tokens
		}
	}
	for _, e := range s.eventSpan(s.state.CompactedSeq, s.state.LastSeq) {
		n += s.shownEvent(e).Tokens
	}
	return n
}
