package sessionstest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ebb/sessions"
)

// Begin implements sessions.Store.
func (m *Mem) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	var v sessions.View
	if err := ctx.Err(); err != nil {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fenced(l)
	if err != nil {
		return v, err
	}
	for _, e := range s.events {
		if e.State == sessions.Pending && len(v.Pending) < limit {
			if e.Attempts > 0 && len(v.Pending) == 0 {
				limit = 1 // what breaks a turn is taken alone
			}
			e.Attempts++
			v.Pending = append(v.Pending, *e)
		}
	}
	v.Session = s.state
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			v.Summaries = append(v.Summaries, *sum)
		}
	}
	for _, e := range s.events {
		if e.Seq > s.state.CompactedSeq {
			v.Tail = append(v.Tail, *e)
		}
	}
	slices.SortFunc(v.Tail, func(a, b sessions.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range s.runs {
		if slices.ContainsFunc(v.Pending, func(e sessions.Event) bool { return e.ID == r.EventID }) {
			v.Runs = append(v.Runs, r)
		}
	}
	return v, nil
}

// Commit implements sessions.Store.
func (m *Mem) Commit(ctx context.Context, l sessions.Lease, t sessions.Turn) (sessions.Committed, error) {
	var c sessions.Committed
	if err := ctx.Err(); err != nil {
		return c, err
	}
	if len(t.Taken) != len(t.TakenTokens) {
		return c, fmt.Errorf("%d messages taken, but %d token counts: %w", len(t.Taken), len(t.TakenTokens), sessions.ErrRefused)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fenced(l)
	if err != nil {
		return c, err
	}
	for _, id := range append(slices.Clone(t.Taken), t.Dead...) {
		if e := s.event(id); e == nil || e.State != sessions.Pending {
			return c, fmt.Errorf("message %d of session %s is not pending: %w", id, l.Key, sessions.ErrConflict)
		}
	}
	first := s.state.LastSeq
	m.append(s, t)
	s.account(t, first)
	s.runs = slices.DeleteFunc(s.runs, func(r sessions.ToolRun) bool {
		return slices.Contains(t.Taken, r.EventID) || slices.Contains(t.Dead, r.EventID)
	})
	c.LastSeq = s.state.LastSeq
	if t.Reply != nil {
		m.lastID++
		now := time.Now()
		out := sessions.Outgoing{ID: m.lastID, Key: l.Key, Reply: *t.Reply, Created: now}
		c.Replies = []sessions.Outgoing{out}
		out.NextAt = now.Add(handTime)
		s.outbox = append(s.outbox, &outgoing{Outgoing: out, sender: l.Owner, sending: true})
	}
	return c, nil
}

// append gives the turn's messages and events their places.
func (m *Mem) append(s *session, t sessions.Turn) {
	for i, id := range t.Taken {
		e := s.event(id)
		s.state.LastSeq++
		e.Seq, e.State, e.Tokens = s.state.LastSeq, sessions.Done, t.TakenTokens[i]
	}
	for _, e := range t.Events {
		m.lastID++
		s.state.LastSeq++
		s.events = append(s.events, &sessions.Event{
			ID: m.lastID, Seq: s.state.LastSeq, Key: s.state.Key, Role: e.Role, Content: e.Content,
			ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID, ToolName: e.ToolName, Tokens: e.Tokens,
			State: sessions.Done, CreatedAt: time.Now(),
		})
	}
	for _, id := range t.Dead {
		s.event(id).State = sessions.Dead
	}
	for _, id := range t.Returned {
		if e := s.event(id); e != nil && e.State == sessions.Pending {
			e.Attempts = max(e.Attempts-1, 0)
		}
	}
}

// account writes the turn's counters; first is the place before its first event.
func (s *session) account(t sessions.Turn, first int64) {
	st := &s.state
	st.LastActiveAt = time.Now()
	if t.Calibration > 0 && !math.IsInf(t.Calibration, 0) {
		st.CalibrationFactor = t.Calibration
	}
	if st.CompactedSeq != t.CompactedSeq { // a compaction committed meanwhile: what the turn saw is gone
		st.TotalTokens += t.Appended
		return
	}
	st.TotalTokens = max(t.TotalTokens, 0)
	if t.ObservedTokens > 0 {
		seen := len(t.Events)
		for i, e := range t.Events {
			if e.Role == sessions.RoleAssistant {
				seen = i
			}
		}
		st.ObservedTokens, st.ObservedSeq = t.ObservedTokens, first+int64(len(t.Taken)+seen)
	}
}

func (s *session) event(id int64) *sessions.Event {
	for _, e := range s.events {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// RecordRun implements sessions.Store.
func (m *Mem) RecordRun(_ context.Context, l sessions.Lease, r sessions.ToolRun) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fenced(l)
	if err != nil {
		return err
	}
	for i, old := range s.runs {
		if old.EventID == r.EventID && old.Call.ID == r.Call.ID {
			s.runs[i].Finished, s.runs[i].Result = r.Finished, r.Result
			return nil
		}
	}
	s.runs = append(s.runs, r)
	return nil
}

// Compact implements sessions.Store.
func (m *Mem) Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fenced(l)
	if err != nil {
		return err
	}
	st := &s.state
	if st.Gen != c.Gen || st.CompactedSeq != c.From || c.Through <= c.From || c.Through > st.LastSeq {
		return fmt.Errorf("compacting session %s: %w", l.Key, sessions.ErrConflict)
	}
	sum := &sessions.Summary{
		Key: l.Key, StartSeq: c.From + 1, EndSeq: c.Through, Text: c.Summary, Tokens: c.Tokens,
		Status: sessions.Active, CreatedAt: time.Now(),
	}
	if err := s.supersede(sum, c.Supersede); err != nil {
		return err
	}
	s.archive(sum, c.From)
	m.lastID += 2
	sum.ID = m.lastID
	s.summaries = append(s.summaries, sum)
	s.events = append(s.events, &sessions.Event{
		ID: m.lastID - 1, Key: l.Key, Role: sessions.RoleSummary, Content: c.Summary, Tokens: c.Tokens,
		State: sessions.Done, CreatedAt: sum.CreatedAt,
	})
	st.CompactedSeq, st.CompactionCount = c.Through, st.CompactionCount+1
	st.TotalTokens = max(st.TotalTokens-c.Freed, 0)
	st.RearmTokens, st.Pinned = c.RearmTokens, c.Pinned
	st.ObservedTokens, st.ObservedSeq = 0, 0
	st.FlushFailures, st.CompactFailures, st.CompactRetryAt = 0, 0, time.Time{}
	entry := c.Log
	entry.StartSeq, entry.EndSeq, entry.Outcome = sum.StartSeq, c.Through, "committed"
	m.record(s, entry)
	return nil
}

// supersede takes summaries out of the view for one that begins where they begin. They must be the newest ones.
func (s *session) supersede(sum *sessions.Summary, ids []int64) error {
	var active []*sessions.Summary
	for _, a := range s.summaries {
		if a.Status == sessions.Active {
			active = append(active, a)
		}
	}
	if len(ids) > len(active) {
		return sessions.ErrConflict
	}
	replaced := active[len(active)-len(ids):]
	for _, a := range replaced {
		if !slices.Contains(ids, a.ID) {
			return sessions.ErrConflict
		}
	}
	for i, a := range replaced {
		a.Status = sessions.Superseded
		sum.MsgCount += a.MsgCount
		sum.Level = max(sum.Level, a.Level+1)
		if i == 0 {
			sum.StartSeq, sum.StartMsgID = a.StartSeq, a.StartMsgID
		}
	}
	return nil
}

// archive marks the events after from that a summary tells, and gives it their ids and number.
func (s *session) archive(sum *sessions.Summary, from int64) {
	for _, e := range s.events {
		if e.Seq <= from || e.Seq > sum.EndSeq {
			continue
		}
		e.Archived = true
		sum.MsgCount++
		if e.Seq == from+1 && sum.StartMsgID == 0 {
			sum.StartMsgID = e.ID
		}
		if e.Seq == sum.EndSeq {
			sum.EndMsgID = e.ID
		}
	}
}

// Log implements sessions.Store.
func (m *Mem) Log(_ context.Context, l sessions.Lease, e sessions.LogEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fenced(l)
	if err != nil {
		return err
	}
	m.record(s, e)
	s.state.CompactFailures, s.state.CompactRetryAt = e.Failures, e.RetryAt
	if e.Rearm > 0 {
		s.state.RearmTokens = e.Rearm
	}
	return nil
}

func (m *Mem) record(s *session, e sessions.LogEntry) {
	m.lastID++
	e.ID, e.Key, e.CreatedAt = m.lastID, s.state.Key, time.Now()
	s.log = append(s.log, e)
}

// Unsent implements sessions.Outbox.
func (m *Mem) Unsent(_ context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fenced(l)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var unsent []sessions.Outgoing
	for _, o := range s.outbox {
		if o.settled {
			continue
		}
		due := o.sending || !o.NextAt.After(now)
		o.Resumed = o.Resumed || (due && o.sender != l.Owner)
		o.sender, o.sending = l.Owner, due
		out := o.Outgoing
		if due {
			o.NextAt, out.NextAt = now.Add(handTime), time.Time{}
		}
		unsent = append(unsent, out)
	}
	return unsent, nil
}

// Settle implements sessions.Outbox.
func (m *Mem) Settle(_ context.Context, t sessions.Settled) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[t.Key]; ok {
		for _, o := range s.outbox {
			if o.ID == t.ID {
				o.settled = o.settled || t.Sent || t.Failed
				o.sending, o.NextAt, o.Part = false, t.NextAt, max(o.Part, t.Part)
				o.Attempts++
				return nil
			}
		}
	}
	return fmt.Errorf("settling reply %d of session %s: %w", t.ID, t.Key, sessions.ErrNotFound)
}
