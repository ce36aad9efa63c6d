package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Begin implements sessions.Store in two statements.
func (s *conversationStore) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	return s.begin(ctx, l, limit, false)
}

// BeginAlone implements sessions.Store as Begin does.
func (s *conversationStore) BeginAlone(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	return s.begin(ctx, l, limit, true)
}

func (s *conversationStore) begin(ctx context.Context, l sessions.Lease, limit int, alone bool) (sessions.View, error) {
	v, err := s.view(ctx, l, limit, alone)
	if err != nil {
		return sessions.View{}, fmt.Errorf("beginning a turn of session %s at term %d: %w", l.Key, l.Term, err)
	}
	return v, nil
}

func (s *conversationStore) view(ctx context.Context, l sessions.Lease, limit int, alone bool) (sessions.View, error) {
	var v sessions.View
	row, err := s.q.TurnBegin(ctx, s.pool, &dbsqlc.TurnBeginParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, MaxMessages: count(limit), MaxBytes: sessions.MaxTurnBytes, Alone: alone,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return v, sessions.ErrLeaseLost
	}
	if err != nil {
		return v, err
	}
	v.Session, v.Suspect, v.More = toSession(&row.Session, row.SpentToday), row.Suspect, row.More
	if v.Suspect > 0 && !alone {
		return v, nil
	}
	if v.Summaries, err = toSummaries(row.Summaries); err != nil {
		return v, err
	}
	if v.Runs, err = toRuns(row.Runs); err != nil {
		return v, err
	}
	// The cursors of the first statement bound the second: what commits between the two is not seen in halves.
	rows, err := s.q.EventsView(ctx, s.pool, &dbsqlc.EventsViewParams{
		SessionKey: l.Key, AfterSeq: v.Session.CompactedSeq, ThroughSeq: v.Session.LastSeq, Pending: row.Pending,
	})
	if err != nil {
		return v, err
	}
	for i := range rows {
		e, err := toShown(&rows[i])
		if err != nil {
			return v, err
		}
		if e.State == sessions.Pending {
			v.Pending = append(v.Pending, e)
		} else {
			v.Tail = append(v.Tail, e)
		}
	}
	slices.SortFunc(v.Pending, func(x, y sessions.Event) int {
		return slices.Index(row.Pending, x.ID) - slices.Index(row.Pending, y.ID)
	})
	return v, nil
}

// Abandon implements sessions.Store.
func (s *conversationStore) Abandon(ctx context.Context, l sessions.Lease, blamed []int64) error {
	err := s.q.TurnAbandon(ctx, s.pool, &dbsqlc.TurnAbandonParams{
		SessionKey: l.Key, Term: &l.Term, Blamed: append([]int64{}, blamed...),
	})
	if err != nil {
		return fmt.Errorf("abandoning a turn of session %s at term %d: %w", l.Key, l.Term, err)
	}
	return nil
}

// Commit implements sessions.Store in one statement. An error that is neither sessions.ErrLeaseLost nor ErrConflict may
// hide that the turn was committed and only the answer got lost; to commit it again then gives ErrConflict.
func (s *conversationStore) Commit(ctx context.Context, l sessions.Lease, t sessions.Turn) (sessions.Committed, error) {
	c, err := s.commit(ctx, l, t)
	if err != nil {
		return sessions.Committed{}, fmt.Errorf("committing a turn of session %s at term %d: %w", l.Key, l.Term, refused(err))
	}
	return c, nil
}

func (s *conversationStore) commit(ctx context.Context, l sessions.Lease, t sessions.Turn) (sessions.Committed, error) {
	var c sessions.Committed
	p, err := commitParams(l, t)
	if err != nil {
		return c, err
	}
	row, err := s.q.TurnCommit(ctx, s.pool, p)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c, sessions.ErrLeaseLost
	case isCode(err, divisionByZero):
		return c, fmt.Errorf("a message that it took is not pending: %w", sessions.ErrConflict)
	case err != nil:
		return c, err
	}
	c.LastSeq = row.LastSeq
	if t.Reply != nil {
		out := sessions.Outgoing{ID: row.ReplyID, Key: l.Key, Reply: *t.Reply, Created: row.ReplyAt}
		if !t.ReplyWaits {
			out.Attempts = 1
		}
		c.Replies = []sessions.Outgoing{out}
	}
	return c, nil
}

func commitParams(l sessions.Lease, t sessions.Turn) (*dbsqlc.TurnCommitParams, error) {
	if len(t.Taken) != len(t.TakenTokens) {
		return nil, fmt.Errorf("%d messages taken, but %d token counts: %w", len(t.Taken), len(t.TakenTokens), sessions.ErrRefused)
	}
	n := len(t.Events)
	p := &dbsqlc.TurnCommitParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term,
		// A nil slice would be NULL, whose length is not 0.
		Taken: append([]int64{}, t.Taken...), TakenTokens: counts(t.TakenTokens),
		Dead:  append([]int64{}, t.Dead...),
		Roles: make([]string, n), Contents: make([]string, n), ToolCalls: make([]string, n),
		ToolCallIds: make([]string, n), ToolNames: make([]string, n), Tokens: make([]int, n),
		TakenTerms: make([]string, len(t.Taken)), Terms: make([]string, n),
		TotalTokens: count(t.TotalTokens), Appended: count(t.Appended), ViewVersion: t.ViewVersion,
		Marked: append([]int64{}, t.Marked...), Pin: t.Pinned != nil, PinnedRows: pinnedRows(t.Pinned), Pinned: clean(orZero(t.Pinned).Text),
		ObservedTokens: count(t.ObservedTokens), ObservedEvents: observedEvents(t.Events), Calibration: finite(t.Calibration),
		PromptTokens: int64(count(t.Usage.Prompt)), CachedTokens: int64(count(t.Usage.Cached)),
		CompletionTokens: int64(count(t.Usage.Completion)), Cost: finite(t.Cost), Model: clean(t.Model),
		Target: []byte("{}"), HandSeconds: handTime.Seconds(), Outcome: string(t.Outcome),
	}
	for i, text := range t.TakenTexts[:min(len(t.TakenTexts), len(t.Taken))] {
		p.TakenTerms[i] = turnTerms(l.Key, t, clean(text))
	}
	for i, e := range t.Events {
		p.Roles[i], p.Contents[i], p.Tokens[i] = string(e.Role), clean(e.Content), count(e.Tokens)
		if e.Role == sessions.RoleAssistant {
			p.Terms[i] = turnTerms(l.Key, t, p.Contents[i])
		}
		p.ToolCallIds[i], p.ToolNames[i] = clean(e.ToolCallID), clean(e.ToolName)
		if len(e.ToolCalls) > 0 {
			calls, err := cleanJSON(e.ToolCalls)
			if err != nil {
				return nil, err
			}
			p.ToolCalls[i] = string(calls)
		}
	}
	if t.Reply != nil {
		target, err := cleanJSON(t.Reply.Target)
		if err != nil {
			return nil, err
		}
		p.HasReply, p.ReplyWaits, p.Target, p.Body, p.Nonce = true, t.ReplyWaits, target, clean(t.Reply.Text), clean(t.Reply.Nonce)
	}
	return p, nil
}

// turnTerms are the terms of a turn's event; none, which is not the same as terms that are still to be found out, of
// commands and what they told.
func turnTerms(key sessions.Key, t sessions.Turn, content string) string {
	if t.Command {
		return arrayText(nil)
	}
	return arrayText(eventTerms(key, content))
}

// observedEvents is how many of a turn's events stood in the prompt of its last model call: those before the answer.
func observedEvents(events []sessions.Event) int {
	for i, e := range slices.Backward(events) {
		if e.Role == sessions.RoleAssistant {
			return i
		}
	}
	return len(events)
}

// RecordRun implements sessions.Store.
func (s *conversationStore) RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error {
	n, err := s.q.ToolRunRecord(ctx, s.pool, &dbsqlc.ToolRunRecordParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term,
		EventID: r.EventID, CallID: clean(r.Call.ID), Name: clean(r.Call.Name), Arguments: clean(r.Call.Arguments),
		Finished: r.Finished, Result: clean(r.Result),
	})
	if err == nil && n == 0 {
		err = sessions.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("recording tool call %s of session %s: %w", r.Call.ID, l.Key, refused(err))
	}
	return nil
}
