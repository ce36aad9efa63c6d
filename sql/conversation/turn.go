package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Begin implements sessions.Store.
func (s *Store) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	return s.begin(ctx, l, limit, nil)
}

// BeginAlone implements sessions.Store.
func (s *Store) BeginAlone(ctx context.Context, l sessions.Lease, limit int, a sessions.Alone) (sessions.View, error) {
	return s.begin(ctx, l, limit, &a)
}

// Suspects implements sessions.Store.
func (s *Store) Suspects(ctx context.Context) (int, error) {
	n, err := s.Q.SuspectSessions(ctx, s.Pool, s.TTL.Seconds())
	if err != nil {
		return 0, fmt.Errorf("counting suspects: %w", err)
	}
	return n, nil
}

func (s *Store) begin(ctx context.Context, l sessions.Lease, limit int, alone *sessions.Alone) (sessions.View, error) {
	v, err := s.view(ctx, l, limit, alone)
	if err != nil {
		return sessions.View{}, fmt.Errorf("beginning a turn: %w", err)
	}
	return v, nil
}

func (s *Store) view(ctx context.Context, l sessions.Lease, limit int, alone *sessions.Alone) (sessions.View, error) {
	var v sessions.View
	row, err := s.Q.TurnBegin(ctx, s.Pool, &dbsqlc.TurnBeginParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, MaxMessages: pg.Clamp(limit), MaxBytes: sessions.MaxTurnBytes,
		Alone: alone != nil, Event: pg.OrZero(alone).Event, Width: pg.OrZero(alone).Width,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return v, sessions.ErrLeaseLost
	}
	if err != nil {
		return v, err
	}
	v.Session, v.Suspect, v.Width, v.More = convert.Session(&row.Session, row.SpentToday), row.Suspect, row.Width, row.More
	if v.Suspect > 0 && alone == nil {
		return v, nil
	}
	if v.Summaries, err = convert.Summaries(row.Summaries); err != nil {
		return v, err
	}
	if v.Runs, err = convert.ToolRuns(row.Runs); err != nil {
		return v, err
	}
	// The cursors of the first statement bound the second, so that a commit between the two is not read in part.
	rows, err := s.Q.EventsView(ctx, s.Pool, &dbsqlc.EventsViewParams{
		SessionKey: l.Key, AfterSeq: v.Session.CompactedSeq, ThroughSeq: v.Session.LastSeq, Pending: row.Pending,
	})
	if err != nil {
		return v, err
	}
	for i := range rows {
		e, err := convert.Shown(&rows[i])
		if err != nil {
			return v, err
		}
		if e.State == sessions.Pending {
			e.Admitted = slices.Contains(row.Admitted, e.ID)
			v.Pending = append(v.Pending, e)
		} else {
			v.Tail = append(v.Tail, e)
		}
	}
	slices.SortFunc(v.Pending, func(x, y sessions.Event) int {
		return slices.Index(row.Pending, x.ID) - slices.Index(row.Pending, y.ID)
	})
	s.speakers.open(l, v.Pending)
	return v, nil
}

// Abandon implements sessions.Store.
func (s *Store) Abandon(ctx context.Context, l sessions.Lease, blamed []int64) error {
	err := s.Q.TurnAbandon(ctx, s.Pool, &dbsqlc.TurnAbandonParams{
		SessionKey: l.Key, Term: &l.Term, Blamed: append([]int64{}, blamed...),
	})
	if err != nil {
		return fmt.Errorf("abandoning a turn: %w", err)
	}
	return nil
}

// Commit implements sessions.Store. After an error other than sessions.ErrLeaseLost and ErrConflict the turn may be
// committed and only the answer lost. A repeated commit then returns ErrConflict.
func (s *Store) Commit(ctx context.Context, l sessions.Lease, t sessions.Turn) (sessions.Committed, error) {
	c, err := s.commit(ctx, l, t)
	if err != nil {
		return sessions.Committed{}, fmt.Errorf("committing a turn: %w", pg.AsRefused(err))
	}
	return c, nil
}

func (s *Store) commit(ctx context.Context, l sessions.Lease, t sessions.Turn) (sessions.Committed, error) {
	var c sessions.Committed
	p, err := commitParams(l, t)
	if err != nil {
		return c, err
	}
	row, err := s.speakers.commit(ctx, l, p)
	if errors.Is(err, pgx.ErrNoRows) { // another owner, or an outsider deleted the session's row
		if _, err = s.Revive(ctx, []sessions.Lease{l}); err == nil {
			row, err = s.speakers.commit(ctx, l, p)
		}
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c, sessions.ErrLeaseLost
	case pg.IsCode(err, pg.DivisionByZero):
		return c, fmt.Errorf("a message that it took is not pending: %w", sessions.ErrConflict)
	case pg.IsConstraint(err, eventPlaces):
		if err := s.Q.SessionContinue(ctx, s.Pool, l.Key); err != nil {
			return c, err
		}
		return c, fmt.Errorf("the session had fallen behind its log: %w", sessions.ErrConflict)
	case err != nil:
		return c, err
	}
	c.LastSeq = row.LastSeq
	s.logs.Note(l.Key, row.LastSeq)
	if t.Reply != nil {
		out := sessions.Outgoing{ID: row.ReplyID, Key: l.Key, Reply: *t.Reply, Created: row.ReplyAt}
		if !t.ReplyWaits {
			out.Attempts = 1
		}
		c.Replies = []sessions.Outgoing{out}
	}
	return c, nil
}

// eventPlaces is the unique index of places. No message is at fault for a place that is taken: the session's row is older than
// the log, as after a deletion under an earlier release.
const eventPlaces = "dingtalk_session_events_seq"

func commitParams(l sessions.Lease, t sessions.Turn) (*dbsqlc.TurnCommitParams, error) {
	if len(t.Taken) != len(t.TakenTokens) {
		return nil, fmt.Errorf("%d messages taken, but %d token counts: %w", len(t.Taken), len(t.TakenTokens), sessions.ErrRefused)
	}
	n := len(t.Events)
	p := &dbsqlc.TurnCommitParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term,
		// A nil slice would be NULL, whose length is not 0.
		Taken: append([]int64{}, t.Taken...), TakenTokens: pg.ClampAll(t.TakenTokens),
		Dead:  append([]int64{}, t.Dead...),
		Roles: make([]string, n), Contents: make([]string, n), ToolCalls: make([]string, n),
		ToolCallIds: make([]string, n), ToolNames: make([]string, n), Tokens: make([]int, n),
		Command:     t.Command,
		TotalTokens: pg.Clamp(t.TotalTokens), Appended: pg.Clamp(t.Appended), ViewVersion: t.ViewVersion,
		Marked: append([]int64{}, t.Marked...), Pin: t.Pinned != nil, ReadRows: readRows(t), Pinned: pg.Clean(pg.OrZero(t.Pinned).Text),
		ObservedTokens: pg.Clamp(t.ObservedTokens), ObservedEvents: observedEvents(t.Events), Calibration: pg.Finite(t.Calibration),
		PromptTokens: int64(pg.Clamp(t.Usage.Prompt)), CachedTokens: int64(pg.Clamp(t.Usage.Cached)),
		CompletionTokens: int64(pg.Clamp(t.Usage.Completion)), Cost: pg.Finite(t.Cost), Model: pg.Clean(t.Model),
		Target: []byte("{}"), HandSeconds: pg.ClaimTime.Seconds(), Outcome: string(t.Outcome),
	}
	for i, e := range t.Events {
		p.Roles[i], p.Contents[i], p.Tokens[i] = string(e.Role), pg.Clean(e.Content), pg.Clamp(e.Tokens)
		p.ToolCallIds[i], p.ToolNames[i] = pg.Clean(e.ToolCallID), pg.Clean(e.ToolName)
		if len(e.ToolCalls) > 0 {
			calls, err := pg.CleanJSON(e.ToolCalls)
			if err != nil {
				return nil, err
			}
			p.ToolCalls[i] = string(calls)
		}
	}
	if err := addWithheld(p, t); err != nil {
		return nil, err
	}
	if t.Reply != nil {
		target, err := pg.CleanJSON(t.Reply.Target)
		if err != nil {
			return nil, err
		}
		p.HasReply, p.ReplyWaits, p.Target, p.Body, p.Nonce = true, t.ReplyWaits, target, pg.Clean(t.Reply.Text), pg.Clean(t.Reply.Nonce)
		p.Card = pg.Clean(t.Reply.Target.Card)
	}
	return p, nil
}

func readRows(t sessions.Turn) []int64 {
	rows := append(convert.PinnedRows(t.Pinned), t.Read...)
	slices.Sort(rows)
	return slices.Compact(rows)
}

// observedEvents counts a turn's events before the answer.
func observedEvents(events []sessions.Event) int {
	for i, e := range slices.Backward(events) {
		if e.Role == sessions.RoleAssistant {
			return i
		}
	}
	return len(events)
}

// RecordRun implements sessions.Store.
func (s *Store) RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error {
	p := &dbsqlc.ToolRunRecordParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term,
		EventID: r.EventID, CallID: pg.Clean(r.Call.ID), Name: pg.Clean(r.Call.Name), Arguments: pg.Clean(r.Call.Arguments),
		Finished: r.Finished, Result: pg.Clean(r.Result),
	}
	n, err := s.Q.ToolRunRecord(ctx, s.Pool, p)
	if n == 0 && err == nil { // as in commit
		if _, err = s.Revive(ctx, []sessions.Lease{l}); err == nil {
			n, err = s.Q.ToolRunRecord(ctx, s.Pool, p)
		}
	}
	if err := pg.Require(n, err, sessions.ErrLeaseLost); err != nil {
		return fmt.Errorf("recording tool call %s: %w", r.Call.ID, pg.AsRefused(err))
	}
	return nil
}
