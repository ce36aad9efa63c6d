package conversation

import (
	"context"
	"errors"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// marks are the rules by which a turn marks messages of which one was counted as an attempt before, or has a mark of another process.
type marks struct {
	term, fallen int64
	limit        int
	alone        *sessions.Alone
}

// errMarksChanged means that a process which had been taken for dead ended its turn meanwhile.
var errMarksChanged = errors.New("the marks of messages have changed")

// replace reads the marks of the waiting messages, and writes those of the turn. It sets the fields of the view about them.
func (m marks) replace(ctx context.Context, s *pg.DB, v *sessions.View, l sessions.Lease) ([]dbsqlc.TurnMarkRow, error) {
	p := s.Pool.Pipeline()
	waiting := s.Q.TurnWaiting(ctx, p, []*dbsqlc.TurnWaitingParams{{SessionKey: l.Key, Event: pg.OrZero(m.alone).Event, MaxMessages: m.limit}})
	if err := p.Send(ctx); err != nil {
		return nil, err
	}
	rows, err := pg.All(waiting.Query)
	if err != nil {
		return nil, err
	}
	d := m.decide(rows)
	v.Suspect, v.Width, v.More = d.suspect, d.width, d.more
	for _, w := range d.writes {
		w.SessionKey, w.Owner, w.Term = l.Key, string(l.Owner), l.Term
	}
	if len(d.writes) == 0 {
		return nil, nil
	}
	p = s.Pool.Pipeline()
	held := s.Q.TurnHold(ctx, p, []*dbsqlc.TurnHoldParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term}})
	written := s.Q.TurnMarkAgain(ctx, p, d.writes)
	if err := p.Send(ctx); err != nil {
		return nil, err
	}
	if _, err := pg.One(held.QueryRow); err != nil {
		return nil, pg.AsLost(err)
	}
	found, err := pg.Found(written.QueryRow)
	if err == nil && len(found) < len(d.writes) {
		err = errMarksChanged
	}
	if err != nil {
		return nil, err
	}
	var taken []dbsqlc.TurnMarkRow
	for i, w := range d.writes {
		if w.AttemptTerm != nil {
			taken = append(taken, dbsqlc.TurnMarkRow(found[i]))
		}
	}
	return taken, nil
}

// decision is what a turn does with waiting messages.
type decision struct {
	writes         []*dbsqlc.TurnMarkAgainParams // in the order of the messages; those without an attempt term are not taken
	suspect, width int                           // those of the oldest message
	more           bool                          // messages are not taken
}

// decide counts the death of a process for each message that it had marked, and chooses those of the turn.
//
// From the second count on a message is a suspect. Each further death halves its width, and is counted only at the width of 1, where
// no other message was in progress. Suspects are not marked, nor the messages after them. A message whose only count is no death is
// taken by itself.
//
// A turn on one message marks it, suspect or not.
func (m marks) decide(rows []dbsqlc.TurnWaitingRow) decision {
	var d decision
	bytes, together := 0, true
	for i, r := range rows {
		fell := r.AttemptTerm != nil && *r.AttemptTerm <= m.fallen
		w := &dbsqlc.TurnMarkAgainParams{
			ID: r.ID, Place: i + 1, AttemptsBefore: r.Attempts, TermBefore: r.AttemptTerm,
			Attempts: r.Attempts, CountedTerm: r.CountedTerm, Width: r.Width,
		}
		lone := r.Attempts == 1 && r.CountedTerm == nil
		if fell {
			w.CountedTerm = nil
			if r.Attempts < sessions.SuspectFrom || pg.OrZero(r.Width) == 1 {
				w.Attempts, w.CountedTerm, lone = r.Attempts+1, r.AttemptTerm, false
			}
			if width := pg.OrZero(r.Width); width > 1 {
				width = (width + 1) / 2
				w.Width = &width
			}
		}
		bytes += r.Bytes
		suspect := w.Attempts >= sessions.SuspectFrom
		if i == 0 {
			d.width = pg.OrZero(w.Width)
			if suspect {
				d.suspect = w.Attempts
			}
		}
		together = together && !suspect && (i == 0 || !lone && i < m.limit && bytes <= sessions.MaxTurnBytes)
		taken := together
		if m.alone != nil {
			taken = i == 0 && (m.alone.Event == 0 || m.alone.Event == r.ID)
		}
		if taken {
			w.AttemptTerm = &m.term
			if m.alone != nil && m.alone.Width != 0 {
				w.Width = &m.alone.Width
			}
		}
		if taken || fell {
			d.writes = append(d.writes, w)
		}
		d.more = d.more || !taken
		together = together && !lone
	}
	return d
}
