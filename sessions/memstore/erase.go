package memstore

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/compaction/erase"
	"ebb/sessions"
)

// Erase implements sessions.Eraser; memory itself is kept elsewhere.
func (m Erasure) Erase(ctx context.Context, key sessions.Key, seqs []int64) (sessions.Erased, error) {
	done, err := m.erase(ctx, key, seqs)
	if err != nil {
		return done, err
	}
	return done, m.awaitFrames(ctx)
}

func (m Erasure) erase(ctx context.Context, key sessions.Key, seqs []int64) (sessions.Erased, error) {
	var done sessions.Erased
	if err := ctx.Err(); err != nil {
		return done, err
	}
	if err := m.lockEnded(ctx, key, func(s *sessionRows) bool { return m.sends(s) || m.isSpared(s) }); err != nil {
		return done, err
	}
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	if !ok {
		return done, fmt.Errorf("erasing events: %w", sessions.ErrNotFound)
	}
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	for _, seq := range seqs {
		if s.eventAt(seq) == nil {
			return done, fmt.Errorf("erasing event %d: %w", seq, sessions.ErrNotFound)
		}
	}
	if len(seqs) == 0 {
		return done, nil
	}
	size := s.viewTokens()
	s.eraseSummaries(seqs, &done)
	s.eraseReplies(seqs, &done)
	for _, seq := range seqs {
		s.eraseEvent(s.eventAt(seq))
		done.Events++
	}
	s.eraseUndo(seqs)
	done.Blobs = len(s.sweepBlobs())
	s.job = nil
	s.markErased(size - s.viewTokens())
	m.t.wakeListeners("", key)
	return done, nil
}

// lockEnded locks the mutex once the session has no open work.
func (m Erasure) lockEnded(ctx context.Context, key sessions.Key, open func(*sessionRows) bool) error {
	for {
		m.t.mu.Lock()
		if lost := m.t.lost[key]; lost != nil {
			m.t.restore(lost, sessions.Lease{Key: key, Term: m.t.lastID})
		}
		if s := m.t.sessions[key]; s == nil || !open(s) {
			return nil
		}
		m.t.mu.Unlock()
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m Erasure) sends(s *sessionRows) bool {
	return slices.ContainsFunc(s.outbox, func(o *outboxRow) bool {
		return !o.settled && o.sending && o.inFlight && time.Until(o.NextAt) > handTime-sessions.SendTime
	})
}

func (m Erasure) isSpared(s *sessionRows) bool {
	return m.t.isAlive(s.state.Lease.Owner) &&
		(s.cut >= sessions.MaxCuts && s.turnRuns() || s.upkeep.cut >= sessions.MaxCuts && s.upkeepRuns())
}

func (s *sessionRows) turnRuns() bool {
	return s.state.Lease.Owner != "" && slices.ContainsFunc(s.waitingMessages(), func(e *sessions.Event) bool {
		return s.marks[e.ID].attempt == s.state.Lease.Term
	})
}

func (s *sessionRows) upkeepRuns() bool {
	return s.state.Lease.Owner != "" && s.upkeep.term == s.state.Lease.Term && time.Now().Before(s.upkeep.until)
}

// The log's marks of summaries change too.
func (s *sessionRows) eraseSummaries(seqs []int64, done *sessions.Erased) {
	words := erase.New()
	for _, seq := range seqs {
		e := s.eventAt(seq)
		if words.AddSeq(seq); e.Content == sessions.ErasedText {
			continue
		}
		if e.Role == sessions.RoleUser {
			words.AddStatement(e.Content)
			continue
		}
		words.AddEcho(e.Content)
		for _, c := range e.ToolCalls {
			words.AddEcho(c.Arguments)
		}
	}
	for _, e := range s.eventSpan(0, s.state.LastSeq) {
		if !slices.Contains(seqs, e.Seq) && e.Content != sessions.ErasedText {
			words.AddKept(e.Seq, e.SenderNick+": "+e.Content)
		}
	}
	for _, sum := range s.summaries {
		covers := slices.ContainsFunc(seqs, func(seq int64) bool { return sum.StartSeq <= seq && seq <= sum.EndSeq })
		if !covers || sum.Text == sessions.ErasedText {
			continue
		}
		before := sum.Text
		sum.Text, sum.Tokens = words.Heal(before, sum.Tokens, sum.StartSeq, sum.EndSeq, func(string) bool { return false })
		if sum.Text == before {
			continue
		}
		for _, e := range s.events {
			if e.Role == sessions.RoleSummary && e.Content == before {
				e.Content, e.Tokens = sum.Text, sum.Tokens
			}
		}
		switch {
		case sum.Status != sessions.Active:
		case sum.Text == sessions.ErasedText:
			done.Summaries++
		default:
			done.Healed++
		}
	}
}

// eraseReplies gives up queued replies with an erased answer. All since the first erased event are wiped.
func (s *sessionRows) eraseReplies(seqs []int64, done *sessions.Erased) {
	first := s.eventAt(seqs[0]).CreatedAt
	for _, seq := range seqs {
		if at := s.eventAt(seq).CreatedAt; at.Before(first) {
			first = at
		}
	}
	for _, o := range s.outbox {
		said := slices.ContainsFunc(seqs, func(seq int64) bool {
			e := s.eventAt(seq)
			return e.Role == sessions.RoleAssistant && e.Content != "" && strings.Contains(o.Reply.Text, e.Content)
		})
		if o.Reply.Text != sessions.ErasedText && (o.settled && !o.Created.Before(first) || !o.settled && said) {
			o.Reply.Text, o.settled = sessions.ErasedText, true
			done.Replies++
		} else if !o.settled {
			if text := s.clearQuotes(o.Reply.Text, seqs); text != o.Reply.Text {
				o.Reply.Text = text
				done.Replies++
			}
		}
	}
}

func (s *sessionRows) clearQuotes(text string, seqs []int64) string {
	for _, seq := range seqs {
		if e := s.eventAt(seq); e.Role == sessions.RoleUser && utf8.RuneCountInString(e.Content) >= 4 {
			text = strings.ReplaceAll(text, e.Content, sessions.ErasedText)
		}
	}
	return text
}

func (s *sessionRows) eraseEvent(e *sessions.Event) {
	e.Content, e.Tokens, e.Withheld = sessions.ErasedText, sessions.ErasedTokens, nil
	e.ToolCalls = slices.Clone(e.ToolCalls)
	for i := range e.ToolCalls {
		e.ToolCalls[i].Arguments = "{}"
	}
	if e.Message != nil {
		msg := *e.Message
		msg.Text, msg.Quote, msg.Attachments = sessions.ErasedText, nil, nil
		e.Message = &msg
	}
	delete(s.shown, e.Seq)
}

// eraseUndo removes the events and all memory from undo data.
func (s *sessionRows) eraseUndo(seqs []int64) {
	for i := range s.log {
		a := &s.log[i]
		if a.before == nil {
			continue
		}
		if a.gen != s.state.Gen || !a.Undone.IsZero() {
			a.before = nil
			continue
		}
		a.before.pinned = ""
		maps.DeleteFunc(a.before.shown, func(seq int64, _ sessions.Shown) bool { return slices.Contains(seqs, seq) })
	}
}

// markErased ends the term of the lease too, and removes the marks of turns.
func (s *sessionRows) markErased(freed int) {
	st := &s.state
	st.TotalTokens = max(0, st.TotalTokens-int(math.Round(st.CalibrationFactor*float64(freed))))
	st.Pinned, st.PinnedDue = "", true
	st.ObservedTokens, st.ObservedSeq = 0, 0
	st.ViewVersion++
	if s.turnRuns() {
		s.cut++
	}
	if s.upkeepRuns() {
		s.upkeep.cut++
	}
	st.Lease.Term++
	for _, e := range s.waitingMessages() {
		mk := s.marks[e.ID]
		mk.attempt = 0
		s.marks[e.ID] = mk
	}
}

// Rewrite implements sessions.Compactor.
func (m Compactions) Rewrite(ctx context.Context, l sessions.Lease, w sessions.Rewritten) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	at := slices.IndexFunc(s.summaries, func(sum *sessions.Summary) bool {
		return sum.ID == w.ID && sum.Status == sessions.Active && (sum.Text == sessions.ErasedText || len(sum.Withheld) > 0)
	})
	if at < 0 {
		return fmt.Errorf("rewriting summary %d: %w", w.ID, sessions.ErrConflict)
	}
	s.summaries[at].Text, s.summaries[at].Tokens, s.summaries[at].Withheld = w.Text, w.Tokens, nil
	s.upkeep.cut = 0
	st := &s.state
	st.TotalTokens = max(0, st.TotalTokens+w.Growth)
	st.ObservedTokens, st.ObservedSeq = 0, 0
	st.CompactFailures, st.CompactRetryAt = 0, time.Time{}
	if st.CompactError != sessions.CompactUndone {
		st.CompactError = ""
	}
	st.ViewVersion++
	entry := w.Log
	entry.Outcome = "committed"
	m.recordAttempt(s, entry, loggedAttempt{})
	return nil
}

// Delete implements sessions.Eraser; memory itself is kept elsewhere.
func (m Erasure) Delete(ctx context.Context, key sessions.Key) (sessions.Deleted, error) {
	done, err := m.delete(ctx, key)
	if err != nil {
		return done, err
	}
	return done, m.awaitFrames(ctx)
}

func (m Erasure) delete(ctx context.Context, key sessions.Key) (sessions.Deleted, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Deleted{}, err
	}
	if err := m.lockEnded(ctx, key, m.sends); err != nil {
		return sessions.Deleted{}, err
	}
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	if !ok {
		return sessions.Deleted{}, fmt.Errorf("deleting a session: %w", sessions.ErrNotFound)
	}
	delete(m.t.sessions, key)
	m.t.wakeListeners("", key)
	maps.DeleteFunc(m.t.cardRows, func(id cardID, c *cardRow) bool { return id.key == key && c.state != sessions.CardOpen })
	for _, e := range s.events {
		m.t.deleted[deletionOf(key, e.MsgID)] = e.MsgID != ""
	}
	return sessions.Deleted{
		Events: len(s.events), Summaries: len(s.summaries), Compactions: len(s.log), Blobs: len(s.blobs), Replies: len(s.outbox),
	}, nil
}
