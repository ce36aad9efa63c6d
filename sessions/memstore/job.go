package memstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ebb/sessions"
)

// isSame ignores how often the job was opened.
func (j *compactionJob) isSame(o sessions.Job) bool {
	return j != nil && j.Gen == o.Gen && j.From == o.From && j.Through == o.Through && j.Version == o.Version
}

// OpenJob implements sessions.Jobs.
func (m Jobs) OpenJob(ctx context.Context, l sessions.Lease, j sessions.Job) (sessions.Source, error) {
	var src sessions.Source
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return src, err
	}
	defer m.t.mu.Unlock()
	if st := s.state; st.Gen != j.Gen || st.CompactedSeq != j.From || j.Through < j.From || j.Through > st.LastSeq {
		return src, fmt.Errorf("opening a compaction: %w", sessions.ErrConflict)
	}
	src.Events = copyAll(s.eventSpan(j.From, j.Through))
	src.Hash = sessions.HashEvents(src.Events)
	for i := range src.Events {
		s.restoreState(&src.Events[i])
	}
	opened := &compactionJob{Job: j, hash: src.Hash}
	opened.Attempts, opened.Staged = 1, false
	if old := s.job; old != nil && old.Gen == j.Gen && old.From == j.From && old.Through == j.Through {
		opened.Attempts = old.Attempts + 1
	}
	if s.job.isSame(j) && s.job.hash == src.Hash {
		opened.staged, opened.Staged = s.job.staged, s.job.Staged
		src.Staged = slices.Clone(opened.staged)
	}
	s.job = opened
	return src, nil
}

// restoreState gives an offloaded event its kept body.
func (s *sessionRows) restoreState(e *sessions.Event) {
	blob := s.shown[e.Seq].Blob
	if blob == "" {
		return
	}
	switch body, ok := s.blobs[blob]; {
	case ok && sessions.BlobOf(body) == blob:
		e.Content = body
	case sessions.BlobOf(e.Content) != blob: // the log lost the offloaded result, too
		e.Content, e.Blob = sessions.Unavailable(blob), blob
	}
}

// StageJob implements sessions.Jobs.
func (m Jobs) StageJob(ctx context.Context, l sessions.Lease, j sessions.Job, staged []byte, paid sessions.Spending) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	if !s.job.isSame(j) {
		return fmt.Errorf("staging a compaction: %w", sessions.ErrConflict)
	}
	s.job.staged, s.job.Staged = slices.Clone(staged), staged != nil
	s.addSpending(paid)
	return nil
}

// MarkUpkeep implements sessions.Jobs.
func (m Jobs) MarkUpkeep(ctx context.Context, l sessions.Lease, limit time.Duration) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	s.upkeep.term, s.upkeep.until = l.Term, time.Now().Add(limit)
	return nil
}

// Job implements sessions.Jobs.
func (m Jobs) Job(_ context.Context, key sessions.Key) (sessions.Job, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s, ok := m.t.sessions[key]; ok && s.job != nil {
		return s.job.Job, nil
	}
	return sessions.Job{}, fmt.Errorf("reading the compaction under way: %w", sessions.ErrNotFound)
}

// Blob implements sessions.Compactor.
func (m Compactions) Blob(_ context.Context, key sessions.Key, blob string) (string, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s, ok := m.t.sessions[key]; ok {
		if body, ok := s.blobs[blob]; ok && sessions.BlobOf(body) == blob {
			return body, nil
		}
		for seq, sh := range s.shown {
			if e := s.eventAt(seq); sh.Blob == blob && e != nil && sessions.BlobOf(e.Content) == blob {
				return e.Content, nil
			}
		}
	}
	return "", fmt.Errorf("reading a result that was moved out of a view: %w", sessions.ErrNotFound)
}

// Undo implements sessions.Compactor.
func (m Compactions) Undo(ctx context.Context, l sessions.Lease, event int64, rest int) (sessions.LogEntry, error) {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return sessions.LogEntry{}, err
	}
	defer m.t.mu.Unlock()
	if i := slices.IndexFunc(s.log, func(a loggedAttempt) bool { return event != 0 && a.askedBy == event }); i >= 0 {
		return s.log[i].LogEntry, nil
	}
	i := len(s.log) - 1
	for ; i >= 0; i-- {
		if a := s.log[i]; a.before != nil && a.gen == s.state.Gen && a.Undone.IsZero() {
			break
		}
	}
	if i < 0 {
		return sessions.LogEntry{}, fmt.Errorf("undoing a compaction: %w", sessions.ErrNotFound)
	}
	done := &s.log[i]
	done.Undone = time.Now()
	st, size, view := &s.state, s.state.TotalTokens, s.viewTokens()
	s.stepBack(*done.before)
	erased := done.before.freed - (s.viewTokens() - view)
	st.TotalTokens = max(size+done.TokensBefore-done.TokensAfter-int(math.Round(st.CalibrationFactor*float64(erased))), 0)
	st.RearmTokens = st.TotalTokens + max(rest, 0)
	st.ObservedTokens, st.ObservedSeq = 0, 0
	st.CompactFailures, st.CompactRetryAt, st.CompactError = 0, time.Time{}, "undone" // the pause of policies that go by counts
	s.job = nil
	st.ViewVersion++
	var by sessions.UserID
	if e := s.findEvent(event); e != nil {
		by = e.SenderID
	}
	return m.recordAttempt(s, sessions.LogEntry{
		Trigger: "undo", RequestedBy: string(by), Policy: done.Policy, Mode: done.Mode, TokensBefore: size, TokensAfter: st.TotalTokens,
		StartSeq: done.StartSeq, EndSeq: done.EndSeq, Outcome: "committed",
	}, loggedAttempt{askedBy: event}), nil
}

func (s *sessionRows) stepBack(b viewBefore) {
	s.state.CompactedSeq, s.state.Pinned = b.cursor, b.pinned
	for _, sum := range s.summaries {
		switch then := slices.Contains(b.summaries, sum.ID); {
		case then:
			sum.Status = sessions.Active
		case sum.Status == sessions.Active:
			sum.Status = sessions.Undone
		}
	}
	for seq, sh := range b.shown {
		if s.shown[seq] = sh; sh.Seq == 0 {
			delete(s.shown, seq)
		}
	}
	for _, e := range s.eventSpan(b.cursor, s.state.LastSeq) {
		e.Archived = false
		if sh, ok := s.shown[e.Seq]; ok {
			s.showEvent(sh) // its body may have been deleted since
		}
	}
	s.sweepBlobs()
}

// Configure implements sessions.States.
func (m Sessions) Configure(ctx context.Context, l sessions.Lease, settings string) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	s.state.Settings = settings
	return nil
}

// Renew implements sessions.States.
func (m Sessions) Renew(ctx context.Context, l sessions.Lease) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			sum.Status = sessions.Closed
		}
	}
	st := &s.state
	for _, e := range s.eventSpan(st.CompactedSeq, st.LastSeq) {
		e.Archived = true
	}
	st.Gen++
	st.ViewVersion++
	st.BaseSeq, st.CompactedSeq = st.LastSeq, st.LastSeq
	st.TotalTokens, st.RearmTokens, st.PinnedDue, st.Suspicion = 0, 0, true, nil
	st.ObservedTokens, st.ObservedSeq = 0, 0
	st.CompactFailures, st.CompactRetryAt, st.CompactError = 0, time.Time{}, ""
	st.FlushEpoch, st.FlushFailures = -1, 0
	s.job = nil
	s.sweepBlobs()
	return nil
}
