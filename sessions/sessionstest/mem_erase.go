package sessionstest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

// Erase implements sessions.Store; memory itself is kept elsewhere.
func (m *Mem) Erase(ctx context.Context, key sessions.Key, seqs []int64) (sessions.Erased, error) {
	var done sessions.Erased
	if err := ctx.Err(); err != nil {
		return done, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[key]
	if !ok {
		return done, fmt.Errorf("erasing events of session %s: %w", key, sessions.ErrNotFound)
	}
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	for _, seq := range seqs {
		if s.at(seq) == nil {
			return done, fmt.Errorf("erasing event %d of session %s: %w", seq, key, sessions.ErrNotFound)
		}
	}
	if len(seqs) == 0 {
		return done, nil
	}
	cursor := s.eraseSummaries(seqs, &done)
	s.eraseReplies(seqs, &done)
	for _, seq := range seqs {
		s.eraseEvent(s.at(seq))
		done.Events++
	}
	s.eraseUndo(seqs, cursor)
	done.Reopened = int(s.state.CompactedSeq - cursor)
	s.state.CompactedSeq = cursor
	for _, e := range s.span(cursor, s.state.LastSeq) {
		e.Archived = false
		if sh, ok := s.shown[e.Seq]; ok {
			s.show(sh) // its body may have been deleted since
		}
	}
	done.Blobs = s.sweepBlobs()
	s.job = nil
	s.erased()
	m.wake("", "")
	return done, nil
}

// eraseSummaries wipes those that tell one of the events, with the log's marks of them, and returns where the cursor goes.
func (s *session) eraseSummaries(seqs []int64, done *sessions.Erased) int64 {
	cursor := s.state.CompactedSeq
	for _, sum := range s.summaries {
		if !slices.ContainsFunc(seqs, func(seq int64) bool { return sum.StartSeq <= seq && seq <= sum.EndSeq }) {
			continue
		}
		for _, e := range s.events {
			if e.Role == sessions.RoleSummary && e.Content == sum.Text {
				e.Content, e.Tokens = sessions.ErasedText, sessions.ErasedTokens
			}
		}
		sum.Text, sum.Tokens = sessions.ErasedText, sessions.ErasedTokens
		if done.Summaries++; sum.Status == sessions.Active {
			cursor = min(cursor, sum.StartSeq-1)
		}
	}
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active && sum.EndSeq > cursor {
			sum.Status = sessions.Undone
		}
	}
	return cursor
}

// eraseReplies wipes replies since the first of the events that nobody reads any more, and gives up those to come that
// hold an answer among them.
func (s *session) eraseReplies(seqs []int64, done *sessions.Erased) {
	first := s.at(seqs[0]).CreatedAt
	for _, seq := range seqs {
		if at := s.at(seq).CreatedAt; at.Before(first) {
			first = at
		}
	}
	for _, o := range s.outbox {
		said := slices.ContainsFunc(seqs, func(seq int64) bool {
			e := s.at(seq)
			return e.Role == sessions.RoleAssistant && e.Content != "" && strings.Contains(o.Reply.Text, e.Content)
		})
		if o.Reply.Text != sessions.ErasedText && (o.settled && !o.Created.Before(first) || !o.settled && said) {
			o.Reply.Text, o.settled = sessions.ErasedText, true
			done.Replies++
		}
	}
}

func (s *session) eraseEvent(e *sessions.Event) {
	e.Content, e.Tokens = sessions.ErasedText, sessions.ErasedTokens
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

// eraseUndo closes the ways back to views that lie ahead of the cursor by now, or show a summary that was wiped, and cuts
// the events and all memory out of the others.
func (s *session) eraseUndo(seqs []int64, cursor int64) {
	wiped := func(id int64) bool {
		return slices.ContainsFunc(s.summaries, func(sum *sessions.Summary) bool { return sum.ID == id && sum.Text == sessions.ErasedText })
	}
	for i := range s.log {
		a := &s.log[i]
		if a.before == nil {
			continue
		}
		stands := a.gen == s.state.Gen && a.Undone.IsZero()
		ahead := cursor < s.state.CompactedSeq && a.before.cursor >= cursor
		if stands && ahead {
			a.Undone = time.Now()
		}
		if !stands || ahead || slices.ContainsFunc(a.before.summaries, wiped) {
			a.before = nil
			continue
		}
		a.before.pinned = ""
		maps.DeleteFunc(a.before.shown, func(seq int64, _ sessions.Shown) bool { return slices.Contains(seqs, seq) })
	}
}

// erased writes the counters of an erasure and takes the lease from whoever has it.
func (s *session) erased() {
	st := &s.state
	st.TotalTokens = 0
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			st.TotalTokens += sum.Tokens
		}
	}
	for _, e := range s.span(st.CompactedSeq, st.LastSeq) {
		st.TotalTokens += s.shows(e).Tokens
	}
	st.RearmTokens, st.Pinned, st.PinnedDue, st.CompactRetryAt = 0, "", true, time.Time{}
	st.ObservedTokens, st.ObservedSeq = 0, 0
	st.ViewVersion++
	st.Lease.Owner = ""
}

// Delete implements sessions.Store; memory itself is kept elsewhere.
func (m *Mem) Delete(ctx context.Context, key sessions.Key) (sessions.Deleted, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Deleted{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[key]
	if !ok {
		return sessions.Deleted{}, fmt.Errorf("deleting session %s: %w", key, sessions.ErrNotFound)
	}
	delete(m.sessions, key)
	return sessions.Deleted{
		Events: len(s.events), Summaries: len(s.summaries), Compactions: len(s.log), Blobs: len(s.blobs), Replies: len(s.outbox),
	}, nil
}
