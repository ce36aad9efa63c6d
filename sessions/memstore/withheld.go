package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

// Withhold implements sessions.Withholder. Facts are kept elsewhere.
func (m Withheld) Withhold(ctx context.Context, l sessions.Lease, w sessions.Withholding) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	for _, e := range s.events {
		if parts, ok := w.Events[e.Seq]; ok && e.Seq > 0 && e.Content != sessions.ErasedText {
			e.Withheld = replaced(e.Withheld, w.Model, w.Mark(parts...))
		}
	}
	for _, sum := range s.summaries {
		if slices.Contains(w.Summaries, sum.ID) && sum.Text != sessions.ErasedText {
			sum.Withheld = replaced(sum.Withheld, w.Model, w.Mark(sessions.WithheldBody))
		}
	}
	if w.Replaces(s.state.Suspicion) {
		s.state.Suspicion = w.Suspicion
	}
	s.state.PinnedDue = s.state.PinnedDue || len(w.Facts) > 0
	s.state.ViewVersion++
	return nil
}

func replaced(old sessions.Withheld, model sessions.ModelID, r sessions.Refusal) sessions.Withheld {
	all := old.With(model, r)
	all[model] = r
	return all
}

// CountWithheld implements sessions.Withholder. Facts are kept elsewhere.
func (m Withheld) CountWithheld(_ context.Context, key sessions.Key, model sessions.ModelID) (sessions.WithheldCount, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	var c sessions.WithheldCount
	s := m.t.sessions[key]
	if s == nil {
		return c, nil
	}
	for _, e := range s.events {
		if e.Seq <= s.state.BaseSeq || !marked(e.Withheld, model) {
			continue
		}
		if c.Events++; e.Seq > c.Newest.Seq {
			c.Newest = sessions.Event{Key: key, Seq: e.Seq, Role: e.Role, SenderID: e.SenderID, SenderNick: e.SenderNick, CreatedAt: e.CreatedAt}
		}
	}
	for _, sum := range s.summaries {
		if sum.Status == sessions.Active && marked(sum.Withheld, model) {
			c.Summaries++
		}
	}
	return c, nil
}

func marked(w sessions.Withheld, model sessions.ModelID) bool {
	_, refused := w[model]
	return refused || model == "" && len(w) > 0
}
