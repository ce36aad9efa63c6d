package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

// Compact implements sessions.Compactor.
func (m Compactions) Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) (sessions.Compacted, error) {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return sessions.Compacted{}, err
	}
	defer m.t.mu.Unlock()
	if err := s.checkCompaction(c); err != nil {
		return sessions.Compacted{}, fmt.Errorf("compacting events: %w", err)
	}
	undo := &viewBefore{cursor: c.From, summaries: s.activeSummaries(), pinned: s.state.Pinned, shown: map[int64]sessions.Shown{}, freed: s.viewTokens()}
	s.upkeep.cut = 0
	entry := c.Log
	entry.Outcome = "committed"
	if len(c.Summaries) > 0 {
		entry.StartSeq, entry.EndSeq = c.Range()
	}
	for _, n := range c.Summaries {
		m.storeSummary(s, n)
	}
	if n := len(c.Summaries); n > 0 {
		m.t.lastID++
		s.events = append(s.events, &sessions.Event{
			ID: m.t.lastID, Key: l.Key, Role: sessions.RoleSummary, Content: c.Summaries[n-1].Text, Tokens: c.Summaries[n-1].Tokens,
			State: sessions.Done, CreatedAt: time.Now(),
		})
	}
	for _, e := range s.eventSpan(c.From, c.Through) {
		e.Archived = true
	}
	for _, sh := range c.Shown {
		if sh.Seq > c.Through && sh.Seq <= s.state.LastSeq {
			if _, ok := undo.shown[sh.Seq]; !ok {
				undo.shown[sh.Seq] = s.shown[sh.Seq]
			}
			s.showEvent(sh)
		}
	}
	s.recordCompaction(c)
	undo.freed -= s.viewTokens()
	deleted := s.sweepBlobs()
	if len(deleted) > 0 {
		entry.Audit = sessions.AuditOffloads(entry.Audit, deleted)
	}
	m.recordAttempt(s, entry, loggedAttempt{before: undo})
	done := sessions.Compacted{BlobsDeleted: len(deleted)}
	if c.Notice != nil {
		m.t.lastID++
		out := sessions.Outgoing{ID: m.t.lastID, Key: l.Key, Reply: *c.Notice, Created: time.Now()}
		done.Replies = []sessions.Outgoing{out}
		out.NextAt = out.Created.Add(handTime)
		s.outbox = append(s.outbox, &outboxRow{Outgoing: out, sender: l.Owner, sending: true})
	}
	return done, nil
}

func (s *sessionRows) checkCompaction(c sessions.Compaction) error {
	st := &s.state
	if st.Gen != c.Gen || st.CompactedSeq != c.From || c.Through < c.From || c.Through > st.LastSeq {
		return sessions.ErrConflict
	}
	if c.Source != "" && c.Source != sessions.HashEvents(copyAll(s.eventSpan(c.From, c.Through))) {
		return fmt.Errorf("source events changed since planning: %w", sessions.ErrConflict)
	}
	if c.Log.Audit != "" && !json.Valid([]byte(c.Log.Audit)) {
		return fmt.Errorf("the audit is no JSON: %w", sessions.ErrRefused)
	}
	var active []sessions.Summary
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			active = append(active, *sum)
		}
	}
	for _, n := range c.Summaries {
		if n.Text == "" {
			return fmt.Errorf("a summary is empty: %w", sessions.ErrRefused)
		}
		active = slices.DeleteFunc(active, func(a sessions.Summary) bool { return a.StartSeq >= n.StartSeq && a.EndSeq <= n.EndSeq })
		active = append(active, sessions.Summary{StartSeq: n.StartSeq, EndSeq: n.EndSeq})
	}
	slices.SortFunc(active, func(a, b sessions.Summary) int { return cmp.Compare(a.StartSeq, b.StartSeq) })
	end := st.BaseSeq
	for _, a := range active {
		if a.StartSeq != end+1 || a.EndSeq < a.StartSeq {
			return fmt.Errorf("summaries would not lie end to end: %w", sessions.ErrConflict)
		}
		end = a.EndSeq
	}
	if end != c.Through {
		return fmt.Errorf("summaries would end at %d: %w", end, sessions.ErrConflict)
	}
	for _, sh := range c.Shown {
		if e := s.eventAt(sh.Seq); sh.Blob != "" && sh.Seq > c.Through && e != nil && sessions.BlobOf(e.Content) != sh.Blob {
			return fmt.Errorf("event %d is not what was moved out: %w", sh.Seq, sessions.ErrConflict)
		}
	}
	return nil
}

func (m Compactions) storeSummary(s *sessionRows, n sessions.NewSummary) {
	m.t.lastID++
	sum := &sessions.Summary{
		ID: m.t.lastID, Key: s.state.Key, StartSeq: n.StartSeq, EndSeq: n.EndSeq, Text: n.Text, Tokens: n.Tokens, Level: n.Level,
		Status: sessions.Active, CreatedAt: time.Now(),
	}
	for _, a := range s.summaries {
		if a.Status == sessions.Active && a.StartSeq >= n.StartSeq && a.EndSeq <= n.EndSeq {
			a.Status = sessions.Superseded
		}
	}
	events := s.eventSpan(n.StartSeq-1, n.EndSeq)
	sum.MsgCount, sum.StartMsgID, sum.EndMsgID = len(events), events[0].ID, events[len(events)-1].ID
	s.summaries = append(s.summaries, sum)
}

func (s *sessionRows) recordCompaction(c sessions.Compaction) {
	st := &s.state
	st.CompactedSeq = c.Through
	st.ViewVersion++
	if len(c.Summaries) > 0 {
		st.CompactionCount++
		st.CompactedAt = time.Now()
		st.FlushFailures = 0
	}
	st.TotalTokens = max(st.TotalTokens-c.Freed, 0)
	st.RearmTokens = max(c.RearmTokens, 0)
	if c.Pinned != nil {
		st.Pinned, st.PinnedDue = c.Pinned.Text, false
	}
	st.ObservedTokens, st.ObservedSeq = 0, 0
	st.CompactFailures, st.CompactRetryAt, st.CompactError = 0, time.Time{}, ""
	s.job = nil
}

// showEvent keeps the body that the text refers to.
func (s *sessionRows) showEvent(sh sessions.Shown) {
	if sh.Blob != "" {
		if _, ok := s.blobs[sh.Blob]; !ok {
			s.blobs[sh.Blob] = s.eventAt(sh.Seq).Content
		}
	}
	s.shown[sh.Seq] = sh
}

// sweepBlobs returns the addresses of bodies without a reference.
func (s *sessionRows) sweepBlobs() (deleted []string) {
	needed := map[string]bool{}
	for seq, sh := range s.shown {
		if seq > s.state.CompactedSeq {
			needed[sh.Blob] = true
		}
	}
	for blob := range s.blobs {
		if !needed[blob] {
			delete(s.blobs, blob)
			deleted = append(deleted, blob)
		}
	}
	return deleted
}

func (s *sessionRows) activeSummaries() []int64 {
	var ids []int64
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			ids = append(ids, sum.ID)
		}
	}
	return ids
}

// Log implements sessions.Compactor.
func (m Compactions) Log(ctx context.Context, l sessions.Lease, e sessions.LogEntry) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	m.recordAttempt(s, e, loggedAttempt{})
	s.state.CompactFailures, s.state.CompactRetryAt = e.Failures, e.RetryAt
	if e.Rearm > 0 {
		s.state.RearmTokens = e.Rearm
	}
	if e.Outcome == "failed" || e.Outcome == "rejected" {
		s.state.CompactError = e.Error
	}
	s.addSpending(sessions.Spending{Kind: sessions.SpentSummary, Usage: e.Usage, Cost: e.Cost})
	return nil
}

func (m Compactions) recordAttempt(s *sessionRows, e sessions.LogEntry, a loggedAttempt) sessions.LogEntry {
	m.t.lastID++
	e.ID, e.Key, e.CreatedAt = m.t.lastID, s.state.Key, time.Now()
	a.LogEntry, a.gen = e, s.state.Gen
	s.log = append(s.log, a)
	return e
}

// Compactions implements sessions.Compactor.
func (m Compactions) Compactions(_ context.Context, key sessions.Key, limit int) ([]sessions.LogEntry, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	list := []sessions.LogEntry{}
	for k, s := range m.t.sessions {
		for _, a := range s.log {
			if key == "" || k == key {
				list = append(list, a.LogEntry)
			}
		}
	}
	slices.SortFunc(list, func(a, b sessions.LogEntry) int { return cmp.Compare(b.ID, a.ID) })
	return list[:min(len(list), max(limit, 0))], nil
}

// Backlogs implements sessions.Compactor.
func (m Compactions) Backlogs(_ context.Context, owner sessions.ReplicaID, tokens int, after sessions.Key, limit int) ([]sessions.Session, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	list := []sessions.Session{}
	for key, s := range m.t.sessions {
		st := s.readState()
		if holder := st.Lease.Owner; key <= after || holder != owner && m.t.isAlive(holder) {
			continue
		}
		if st.Suspicion != nil || st.TotalTokens >= max(tokens, st.RearmTokens) && !st.CompactRetryAt.After(time.Now()) {
			list = append(list, sessions.Session{
				Key: key, ConversationID: st.ConversationID, TotalTokens: st.TotalTokens, RearmTokens: st.RearmTokens, SpentToday: st.SpentToday,
				Suspicion: st.Suspicion,
			})
		}
	}
	slices.SortFunc(list, func(a, b sessions.Session) int { return cmp.Compare(a.Key, b.Key) })
	return list[:min(len(list), max(limit, 0))], nil
}
