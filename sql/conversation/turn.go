package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/index"
	"ebb/sql/pg"
)

// Turns takes waiting messages and stores the results of turns.
type Turns struct {
	db       *pg.DB
	logs     *index.Logs
	speakers *speakers
	tails    *tails
}

// NewTurns returns the turns of a database. The index learns of those that are committed.
func NewTurns(db *pg.DB, logs *index.Logs) *Turns { return &Turns{db, logs, newSpeakers(), newTails()} }

// Begin implements sessions.Turns.
func (s *Turns) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	return s.begin(ctx, l, limit, nil)
}

// BeginAlone implements sessions.Turns.
func (s *Turns) BeginAlone(ctx context.Context, l sessions.Lease, limit int, a sessions.Alone) (sessions.View, error) {
	return s.begin(ctx, l, limit, &a)
}

// Suspects implements sessions.Turns.
func (s *Turns) Suspects(ctx context.Context) (int, error) {
	n, err := s.db.Q.SuspectSessions(ctx, s.db.Pool, s.db.TTL.Seconds())
	if err != nil {
		return 0, fmt.Errorf("counting suspects: %w", err)
	}
	return n, nil
}

func (s *Turns) begin(ctx context.Context, l sessions.Lease, limit int, alone *sessions.Alone) (sessions.View, error) {
	for tries := 1; ; tries++ {
		v, err := s.view(ctx, l, pg.Clamp(limit), alone)
		switch {
		case err == nil:
			return v, nil
		case tries == maxBegins || !errors.Is(err, errMarksChanged):
			return sessions.View{}, fmt.Errorf("beginning a turn: %w", err)
		}
	}
}

const maxBegins = 3

// view marks the messages in the pipeline that reads all, when none of them was counted. Others are marked by a second one, after a
// look at their marks.
func (s *Turns) view(ctx context.Context, l sessions.Lease, limit int, alone *sessions.Alone) (sessions.View, error) {
	var v sessions.View
	p := s.db.Pool.Pipeline()
	defer p.Close()
	opened := s.db.Q.TurnOpen(ctx, p, []*dbsqlc.TurnOpenParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, MaxMessages: limit}})
	var mark []*dbsqlc.TurnMarkParams
	if alone == nil && limit > 0 {
		mark = append(mark, &dbsqlc.TurnMarkParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, MaxMessages: limit, MaxBytes: sessions.MaxTurnBytes,
		})
	}
	marked := s.db.Q.TurnMark(ctx, p, mark)
	known := s.tails.get(l)
	tail := s.db.Q.TurnTail(ctx, p, []*dbsqlc.TurnTailParams{{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ViewVersion: known.version, AfterSeq: known.last(),
	}})
	summaries := s.db.Q.TurnSummaries(ctx, p, []sessions.Key{l.Key})
	if err := p.Send(ctx); err != nil {
		return v, err
	}
	open, err := pg.One(opened.QueryRow)
	if err != nil {
		return v, pg.AsLost(err)
	}
	pending, err := pg.All(marked.Query)
	if err != nil {
		return v, err
	}
	var spent int64
	if on := open.Session.SpentOn; on != nil && on.Format(time.DateOnly) == open.Today {
		spent = open.Session.SpentTokens
	}
	v.Session, v.More = convert.Session(&open.Session, spent), limit > 0 && open.Waiting > len(pending)
	if limit > 0 && len(pending) == 0 && open.Waiting > 0 {
		m := marks{term: l.Term, fallen: open.Session.FallenTerm, limit: limit, alone: alone}
		if pending, err = m.replace(ctx, s.db, &v, l); err != nil {
			return v, err
		}
	}
	if v.Suspect > 0 && alone == nil {
		return v, nil
	}
	if err := addPending(&v, pending); err != nil {
		return v, err
	}
	s.speakers.open(l, open.Session.LastTurn, v.Pending)
	if v.HasRuns = open.HasRuns; v.HasRuns && len(pending) > 0 {
		if err := addRuns(ctx, s.db, &v); err != nil {
			return v, err
		}
	}
	rows, err := pg.All(tail.Query)
	if err != nil {
		return v, err
	}
	known = known.continueWith(v.Session.ViewVersion, rows)
	if err := errors.Join(addSummaries(&v, summaries), addTail(&v, known.events, rows)); err != nil {
		return v, err
	}
	s.tails.put(l, v.Session.ViewVersion, known, v.Tail)
	// The newest events expired, or a takeover came between two statements: then those behind the known ones were not read.
	if seen := max(lastPlace(v.Tail), v.Session.CompactedSeq); seen < v.Session.LastSeq {
		return v, s.checkLease(ctx, l)
	}
	return v, nil
}

// checkLease returns sessions.ErrLeaseLost if the lease is not the current one.
func (s *Turns) checkLease(ctx context.Context, l sessions.Lease) error {
	p := s.db.Pool.Pipeline()
	held := s.db.Q.TurnHold(ctx, p, []*dbsqlc.TurnHoldParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term}})
	if err := p.Send(ctx); err != nil {
		return err
	}
	_, err := pg.One(held.QueryRow)
	return pg.AsLost(err)
}

func addPending(v *sessions.View, rows []dbsqlc.TurnMarkRow) error {
	slices.SortFunc(rows, func(a, b dbsqlc.TurnMarkRow) int { return cmp.Compare(a.Place, b.Place) })
	for _, r := range rows {
		e, err := convert.Event(sessions.Event{
			Key: v.Session.Key, ID: r.ID, Role: sessions.RoleUser, State: sessions.Pending, Attempts: r.Attempts, Content: r.Content,
			SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: pg.OrZero(r.MsgID), CreatedAt: r.CreatedAt, Admitted: r.Admitted,
		}, convert.EventJSON{Message: r.Message, Withheld: r.Withheld})
		if err != nil {
			return err
		}
		v.Pending = append(v.Pending, e)
	}
	return nil
}

// addTail takes the raw events of the view. The text of a message stands once in the row, as its content, and is put back into the
// message here.
func addTail(v *sessions.View, known []sessions.Event, rows []dbsqlc.TurnTailRow) error {
	if n := len(known) + len(rows); n > 0 {
		v.Tail = append(make([]sessions.Event, 0, n), known...)
	}
	for i := range rows {
		r := &rows[i]
		e, err := convert.Event(sessions.Event{
			Key: v.Session.Key, ID: r.ID, Seq: pg.OrZero(r.Seq), Role: r.Role, State: sessions.Done, Content: r.Content, SenderID: r.SenderID,
			SenderNick: r.SenderNick, MsgID: pg.OrZero(r.MsgID), ToolCallID: r.ToolCallID, ToolName: r.ToolName,
			Tokens: r.Tokens, Archived: r.IsArchived, Blob: pg.OrZero(r.BlobID), CreatedAt: r.CreatedAt,
		}, convert.EventJSON{ToolCalls: r.ToolCalls, Message: r.Message, Withheld: r.Withheld})
		if err != nil {
			return err
		}
		if e.Message != nil && r.Said != "" {
			e.Message.Text = r.Said
		}
		v.Tail = append(v.Tail, e)
	}
	return nil
}

func addSummaries(v *sessions.View, summaries *dbsqlc.TurnSummariesBatchResults) error {
	rows, err := pg.All(summaries.Query)
	for i := range rows {
		one, itsErr := convert.Summary(&rows[i])
		v.Summaries, err = append(v.Summaries, one), cmp.Or(err, itsErr)
	}
	return err
}

func addRuns(ctx context.Context, s *pg.DB, v *sessions.View) error {
	p := &dbsqlc.TurnRunsParams{SessionKey: v.Session.Key}
	for _, e := range v.Pending {
		p.Ids, p.Broken = append(p.Ids, e.ID), p.Broken || e.Attempts > 0
	}
	rows, err := s.Q.TurnRuns(ctx, s.Pool, p)
	for _, r := range rows {
		v.Runs = append(v.Runs, sessions.ToolRun{
			Call:    sessions.ToolCall{ID: r.CallID, Name: r.Name, Arguments: r.Arguments},
			EventID: r.EventID, Finished: r.Finished, Result: r.Result,
		})
	}
	return err
}

// Abandon implements sessions.Turns.
func (s *Turns) Abandon(ctx context.Context, l sessions.Lease, blamed []int64) error {
	err := s.db.Q.TurnAbandon(ctx, s.db.Pool, &dbsqlc.TurnAbandonParams{
		SessionKey: l.Key, Term: &l.Term, Blamed: append([]int64{}, blamed...),
	})
	if err != nil {
		return fmt.Errorf("abandoning a turn: %w", err)
	}
	return nil
}

// RecordRun implements sessions.Turns.
func (s *Turns) RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error {
	p := &dbsqlc.ToolRunRecordParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term,
		EventID: r.EventID, CallID: pg.Clean(r.Call.ID), Name: pg.Clean(r.Call.Name), Arguments: pg.Clean(r.Call.Arguments),
		Finished: r.Finished, Result: pg.Clean(r.Result),
	}
	n, err := s.db.Q.ToolRunRecord(ctx, s.db.Pool, p)
	if n == 0 && err == nil { // as in commit
		if _, err = reviveSessions(ctx, s.db, []sessions.Lease{l}); err == nil {
			n, err = s.db.Q.ToolRunRecord(ctx, s.db.Pool, p)
		}
	}
	if err := pg.Require(n, err, sessions.ErrLeaseLost); err != nil {
		return fmt.Errorf("recording tool call %s: %w", r.Call.ID, pg.AsRefused(err))
	}
	return nil
}
