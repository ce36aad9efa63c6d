package memstore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ebb/sessions"
)

// Begin implements sessions.Turns.
func (m Turns) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	return m.beginTurn(ctx, l, limit, nil)
}

// BeginAlone implements sessions.Turns.
func (m Turns) BeginAlone(ctx context.Context, l sessions.Lease, limit int, a sessions.Alone) (sessions.View, error) {
	return m.beginTurn(ctx, l, limit, &a)
}

// Suspects implements sessions.Turns.
func (m Turns) Suspects(context.Context) (int, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	n := 0
	for _, s := range m.t.sessions {
		if slices.ContainsFunc(s.events, func(e *sessions.Event) bool {
			mk, l := s.marks[e.ID], s.state.Lease
			dead := mk.attempt != 0 && (mk.attempt <= s.fallen || mk.attempt == l.Term && l.Owner != "" && !m.t.isAlive(l.Owner))
			return e.State == sessions.Pending && (e.Attempts == sessions.SuspectFrom || e.Attempts == sessions.SuspectFrom-1 && dead)
		}) {
			n++
		}
	}
	return n, nil
}

func (m Turns) beginTurn(ctx context.Context, l sessions.Lease, limit int, alone *sessions.Alone) (sessions.View, error) {
	var v sessions.View
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return v, err
	}
	defer m.t.mu.Unlock()
	s.takePending(&v, limit, alone)
	if v.Session = s.readState(); v.Suspect > 0 && alone == nil {
		return v, nil
	}
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active {
			v.Summaries = append(v.Summaries, *sum)
		}
	}
	slices.SortFunc(v.Summaries, func(a, b sessions.Summary) int { return cmp.Compare(a.StartSeq, b.StartSeq) })
	for _, e := range s.events {
		if e.Seq > s.state.CompactedSeq {
			v.Tail = append(v.Tail, s.shownEvent(e))
		}
	}
	slices.SortFunc(v.Tail, func(a, b sessions.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	v.HasRuns = len(s.runs) > 0
	for _, r := range s.runs { // the first message of a broken attempt may be answered already
		if slices.ContainsFunc(v.Pending, func(e sessions.Event) bool { return e.ID == r.EventID || e.Attempts > 0 }) {
			v.Runs = append(v.Runs, r)
		}
	}
	return v, nil
}

// takePending sets the messages of a view, and the state of those that wait.
func (s *sessionRows) takePending(v *sessions.View, limit int, alone *sessions.Alone) {
	waiting := s.waitingMessages()
	if alone != nil {
		slices.SortStableFunc(waiting, func(a, b *sessions.Event) int { return isOther(a, alone.Event) - isOther(b, alone.Event) })
	}
	light, bytes := true, 0
	for n, e := range waiting {
		if limit <= 0 {
			return
		}
		m := s.marks[e.ID]
		lone := e.Attempts == 1 && m.counted == 0
		if m.attempt != 0 && m.attempt <= s.fallen {
			lone = false
			e.Attempts, m = m.fall(e.Attempts)
			s.marks[e.ID] = m
		}
		if n == limit {
			v.More = true
			return
		}
		if n == 0 {
			v.Width = m.width
		}
		if n == 0 && e.Attempts >= sessions.SuspectFrom {
			v.Suspect = e.Attempts
		}
		bytes += len(e.Content)
		suspect := e.Attempts >= sessions.SuspectFrom
		light = light && !suspect && (n == 0 || bytes <= sessions.MaxTurnBytes)
		switch {
		case alone == nil && light && (n == 0 || !lone), alone != nil && n == 0 && (alone.Event == 0 || alone.Event == e.ID):
			m.attempt = s.state.Lease.Term
			if alone != nil && alone.Width != 0 {
				m.width = alone.Width
			}
			one := *e
			one.Admitted = m.admitted
			v.Pending = append(v.Pending, one)
		default:
			v.More = true
		}
		light = light && !lone
		s.marks[e.ID] = m
	}
}

// fall counts the death of the process that had the message.
func (m turnMark) fall(attempts int) (int, turnMark) {
	fallen := m.attempt
	m.attempt, m.counted = 0, 0
	if attempts < sessions.SuspectFrom || m.width == 1 {
		attempts++
		m.counted = fallen
	}
	if m.width > 1 {
		m.width = (m.width + 1) / 2
	}
	return attempts, m
}

// Pending implements sessions.Inbox.
func (m Inbox) Pending(_ context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s := cmp.Or(m.t.sessions[key], m.t.lost[key])
	if s == nil {
		return nil, nil
	}
	var pending []sessions.Event
	for _, e := range slices.Backward(s.events) {
		if e.State != sessions.Pending || len(pending) == limit {
			continue
		}
		peek := *e
		peek.Admitted = s.marks[e.ID].admitted
		if text := []rune(e.Content); len(text) > sessions.MaxPeek {
			peek.Content = string(text[:sessions.MaxPeek])
		}
		if e.Message != nil {
			msg := *e.Message
			msg.Text = ""
			peek.Message = &msg
		}
		pending = append(pending, peek)
	}
	return pending, nil
}

// Abandon implements sessions.Turns.
func (m Turns) Abandon(ctx context.Context, l sessions.Lease, blamed []int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s := cmp.Or(m.t.sessions[l.Key], m.t.lost[l.Key])
	if s == nil {
		return nil
	}
	for _, e := range s.events {
		switch mk := s.marks[e.ID]; {
		case e.State != sessions.Pending:
		case mk.attempt == l.Term:
			if slices.Contains(blamed, e.ID) {
				e.Attempts++
			}
			mk.attempt = 0
			s.marks[e.ID] = mk
		case mk.counted == l.Term && !slices.Contains(blamed, e.ID):
			e.Attempts--
			mk.counted = 0
			s.marks[e.ID] = mk
		}
	}
	return nil
}

// Commit implements sessions.Turns.
func (m Turns) Commit(ctx context.Context, l sessions.Lease, t sessions.TurnResult) (sessions.Committed, error) {
	var c sessions.Committed
	if len(t.Taken) != len(t.TakenTokens) {
		return c, fmt.Errorf("%d messages taken, but %d token counts: %w", len(t.Taken), len(t.TakenTokens), sessions.ErrRefused)
	}
	m.t.restoreTurn(l)
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return c, err
	}
	defer m.t.mu.Unlock()
	ends := slices.Concat(t.Taken, t.Dead)
	for _, e := range t.Stops {
		ends = append(ends, e.ID)
	}
	for _, id := range ends {
		if e := s.findEvent(id); e == nil || e.State != sessions.Pending {
			return c, fmt.Errorf("message %d is not pending: %w", id, sessions.ErrConflict)
		}
	}
	first := s.state.LastSeq
	s.cut = 0
	if t.Suspicion != nil {
		s.state.Suspicion = t.Suspicion
	}
	m.appendEvent(s, t)
	s.takeStops(t.Stops, t.CardTo)
	s.addUsage(t, first)
	s.addWaits(l.Key, t.Waits)
	s.runs = slices.DeleteFunc(s.runs, func(r sessions.ToolRun) bool {
		return t.Ran && !slices.ContainsFunc(s.events, func(e *sessions.Event) bool {
			return e.State == sessions.Pending && (e.ID == r.EventID || e.Attempts > 0 || s.marks[e.ID].attempt != 0)
		})
	})
	c.LastSeq = s.state.LastSeq
	for id, c := range m.t.cardRows {
		if id.key == l.Key && t.CardTo != 0 && c.Kind == sessions.ReplyCard && c.state == sessions.CardOpen && slices.Contains(t.Taken, c.EventID) {
			c.EventID = t.CardTo
		}
	}
	if t.Reply != nil {
		m.t.lastID++
		now := time.Now()
		out := sessions.Outgoing{ID: m.t.lastID, Key: l.Key, Reply: *t.Reply, Created: now}
		if !t.ReplyWaits {
			out.Attempts = 1
		}
		c.Replies = []sessions.Outgoing{out}
		out.NextAt = now.Add(handTime)
		row := &outboxRow{Outgoing: out, sender: l.Owner, sending: true, inFlight: !t.ReplyWaits}
		if last := s.events[len(s.events)-1]; last.Role == sessions.RoleAssistant {
			row.answer = last
		}
		s.outbox = append(s.outbox, row)
		for _, f := range t.Files {
			m.t.lastID++
			out := sessions.Outgoing{ID: m.t.lastID, Key: l.Key, Reply: f, Created: now}
			c.Replies = append(c.Replies, out)
			out.NextAt = now.Add(handTime)
			s.outbox = append(s.outbox, &outboxRow{Outgoing: out, sender: l.Owner, sending: true, answer: row.answer})
		}
		if track := t.Reply.Target.Card; track != "" {
			m.t.recordCard(sessions.Card{Key: l.Key, Kind: sessions.ReplyCard, Track: track, EventID: t.Taken[0], CreatedAt: now})
		}
	}
	return c, nil
}

func dropWebhook(e *sessions.Event) {
	if e.Message == nil {
		return
	}
	m := *e.Message
	m.Webhook, m.WebhookExpires = "", time.Time{}
	e.Message = &m
}

func (m Turns) appendEvent(s *sessionRows, t sessions.TurnResult) {
	number := s.state.LastSeq + 1
	for i, id := range t.Taken {
		e := s.findEvent(id)
		s.state.LastSeq++
		e.Seq, e.State, e.Tokens = s.state.LastSeq, sessions.Done, t.TakenTokens[i]
		if i < len(t.TakenWithheld) {
			e.Withheld = t.TakenWithheld[i]
		}
		mark := s.marks[id]
		mark.turn = number
		s.marks[id] = mark
		dropWebhook(e)
		if e.Message != nil {
			e.Message.Outcome = cmp.Or(t.Outcome, e.Message.Outcome)
		}
	}
	for _, e := range t.Events {
		m.t.lastID++
		s.state.LastSeq++
		s.events = append(s.events, &sessions.Event{
			ID: m.t.lastID, Seq: s.state.LastSeq, Key: s.state.Key, Role: e.Role, Content: e.Content,
			ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID, ToolName: e.ToolName, Tokens: e.Tokens,
			State: sessions.Done, CreatedAt: time.Now(), Withheld: e.Withheld,
		})
	}
	for _, id := range t.Dead {
		s.findEvent(id).State = sessions.Dead
		dropWebhook(s.findEvent(id))
	}
	for _, id := range t.Left {
		if mk := s.marks[id]; mk.attempt == s.state.Lease.Term {
			mk.attempt = 0
			s.marks[id] = mk
		}
	}
}

func (s *sessionRows) takeStops(stops []sessions.Event, next int64) {
	number := s.state.LastSeq + 1
	for _, one := range stops {
		e := s.findEvent(one.ID)
		mark := s.marks[one.ID]
		mark.turn = number
		s.marks[one.ID] = mark
		s.state.LastSeq++
		e.Seq, e.State, e.Tokens = s.state.LastSeq, sessions.Done, one.Tokens
		dropWebhook(e)
		if e.Message != nil {
			e.Message.Outcome, e.Message.Next = sessions.StopDone, next
		}
	}
}

// first is the place before the turn's first event.
func (s *sessionRows) addUsage(t sessions.TurnResult, first int64) {
	st := &s.state
	st.LastActiveAt = time.Now()
	st.Candidates += len(t.Marked) // candidates of all flushes
	s.addSpending(sessions.Spending{Kind: sessions.SpentTurn, Usage: t.Spent.Usage, Cost: t.Spent.Cost})
	if t.Calibration > 0 && !math.IsInf(t.Calibration, 0) {
		st.CalibrationFactor = t.Calibration
	}
	if st.ViewVersion != t.ViewVersion {
		st.TotalTokens += t.Appended
		return
	}
	st.TotalTokens = max(t.TotalTokens, 0)
	if t.Pinned != nil {
		st.Pinned, st.PinnedDue = t.Pinned.Text, false // memory's rows are elsewhere
	}
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

// RecordRun implements sessions.Turns.
func (m Turns) RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error {
	m.t.restoreTurn(l)
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	for i, old := range s.runs {
		if old.EventID == r.EventID && old.Call.ID == r.Call.ID {
			s.runs[i].Finished, s.runs[i].Result = r.Finished, r.Result
			return nil
		}
	}
	s.runs = append(s.runs, r)
	return nil
}
