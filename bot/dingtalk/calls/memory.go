package calls

import (
	"context"
	"sync"
	"time"

	"ebb/sessions"
)

// Memory is a Store of one process.
type Memory struct {
	mu     sync.Mutex
	months map[string]*memoryMonth
	latest string
	people map[string]int64 // by month and person
}

type memoryMonth struct {
	sessions.CallMonth
	quota int64
	byAPI map[string]int64
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{months: map[string]*memoryMonth{}, people: map[string]int64{}}
}

// OpenCallMonth implements Store.
func (s *Memory) OpenCallMonth(_ context.Context, month string, quota int64) (sessions.CallMonth, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.months[month]
	if m == nil {
		m = &memoryMonth{quota: quota, byAPI: map[string]int64{}}
		if before := s.months[s.latest]; before != nil {
			m.LowBefore = before.Reported > 0 || !before.ExhaustedUntil.IsZero()
		}
		s.months[month], s.latest = m, month
		first := m.CallMonth
		first.First = true
		return first, nil
	}
	if m.quota != quota {
		m.quota, m.Reported, m.ExhaustedUntil = quota, 0, time.Time{}
	}
	return m.CallMonth, nil
}

// Now implements Store.
func (*Memory) Now() time.Time { return time.Now() }

// Replicas implements Store.
func (*Memory) Replicas(context.Context) (int, error) { return 1, nil }

// CallMonth implements Store.
func (s *Memory) CallMonth(_ context.Context, month string) (sessions.CallMonth, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.months[month]; m != nil {
		return m.CallMonth, nil
	}
	return sessions.CallMonth{}, sessions.ErrNotFound
}

// ReserveCalls implements Store.
func (s *Memory) ReserveCalls(_ context.Context, day string, apis []string, bound int64, now time.Time) (sessions.CallMonth, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, n := s.months[sessions.MonthOf(day)], int64(len(apis))
	if m == nil || m.Calls+n > bound || m.ExhaustedUntil.After(now) {
		return sessions.CallMonth{}, false, nil
	}
	m.Calls += n
	for _, api := range apis {
		m.byAPI[api]++
	}
	return m.CallMonth, true, nil
}

// ReturnCall implements Store.
func (s *Memory) ReturnCall(_ context.Context, day, api string) (sessions.CallMonth, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.months[sessions.MonthOf(day)]
	if m == nil {
		return sessions.CallMonth{}, sessions.ErrNotFound
	}
	m.Calls--
	m.byAPI[api]--
	return m.CallMonth, nil
}

// ReportCallLevel implements Store.
func (s *Memory) ReportCallLevel(_ context.Context, month string, level int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.months[month]
	if m == nil || m.Reported >= level {
		return false, nil
	}
	m.Reported = level
	return true, nil
}

// PersonCalls implements Store.
func (s *Memory) PersonCalls(_ context.Context, month string, person sessions.UserID) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.people[month+" "+string(person)], nil
}

// CountPersonCall implements Store.
func (s *Memory) CountPersonCall(_ context.Context, month string, person sessions.UserID, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[month+" "+string(person)]++
	return nil
}

// ExhaustCalls implements Store.
func (s *Memory) ExhaustCalls(_ context.Context, month string, until time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.months[month]
	if m == nil {
		return false, sessions.ErrNotFound
	}
	first := m.ExhaustedUntil.IsZero()
	if until.After(m.ExhaustedUntil) {
		m.ExhaustedUntil = until
	}
	return first, nil
}
