package search

import (
	"context"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/facts"
	"ebb/sql/index"
	"ebb/sql/pg"
)

// hits reads texts only for the finds that are shown, in one statement for events and one for nicks. An event that is gone by then
// was erased meanwhile.
func (x *searching) hits(ctx context.Context, finds []rank.Match) ([]memory.Hit, error) {
	finds = x.dropRepeats(finds)
	finds = finds[:min(x.limit, len(finds))]
	var seqs []int64
	for _, f := range finds {
		if f.Doc.Seq > 0 {
			seqs = append(seqs, f.Doc.Seq)
		}
	}
	events := make(map[int64]dbsqlc.EventsFoundRow, len(seqs))
	if len(seqs) > 0 {
		rows, err := x.store.db.Q.EventsFound(ctx, x.store.db.Pool, &dbsqlc.EventsFoundParams{SessionKey: x.reader.Key, Seqs: seqs, MaxChars: index.MaxRead, Model: string(x.reader.Reads)})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			events[pg.OrZero(row.Seq)] = row
		}
	}
	var memories []memory.Memory
	for _, f := range finds {
		if x.found[f.Place].memory != nil {
			memories = append(memories, convert.Memory(x.found[f.Place].memory))
		}
	}
	if err := x.store.identities.NameIn(ctx, x.reader.Key, memories); err != nil {
		return nil, err
	}
	pages, err := x.pageHits(ctx, finds)
	if err != nil {
		return nil, err
	}
	var hits []memory.Hit
	for _, f := range finds {
		h := memory.Hit{Score: f.Score, Why: f.Why, Outdated: f.Doc.Outdated}
		if x.found[f.Place].page != nil {
			p, ok := pages[f.Place]
			if !ok {
				continue // forgotten meanwhile
			}
			h.Path, h.File, h.Page, h.Content, h.Who, h.At = p.Path, p.File, p.Page, p.Content, p.Who, p.At
		} else if f.Doc.Seq == 0 {
			m := memories[0]
			memories = memories[1:]
			h.Path, h.MemoryID, h.Content, h.Who, h.At = x.store.visible.Path(m), m.ID, m.Content, m.Source(), m.Time()
		} else {
			e, ok := events[f.Doc.Seq]
			if !ok {
				continue // erased meanwhile, or refused by the model that asks
			}
			h.Path, h.Seq, h.At = facts.EventPath(f.Doc.Seq), f.Doc.Seq, e.CreatedAt
			h.Content = x.query.Piece(e.Content, x.chars)
			h.Who = speakerName(e.Role, e.SenderNick, e.SenderID)
		}
		hits = append(hits, h)
	}
	return hits, nil
}

// An event is dropped if a memory drawn from it has its content. The memory takes the better of the two ranks.
func (x *searching) dropRepeats(finds []rank.Match) []rank.Match {
	var kept []rank.Match
	taken := make(map[int]bool)
	for _, f := range finds {
		if f.Doc.Seq > 0 {
			if m, ok := x.drawnFrom(f, finds); ok {
				f = m
			}
		}
		if f.Doc.Seq == 0 {
			if taken[f.Place] {
				continue
			}
			taken[f.Place] = true
		}
		kept = append(kept, f)
	}
	return kept
}

func (x *searching) drawnFrom(event rank.Match, finds []rank.Match) (rank.Match, bool) {
	for _, f := range finds {
		m := x.found[f.Place].memory
		if m != nil && m.SourceSession == x.reader.Key && m.StartSeq <= event.Doc.Seq && event.Doc.Seq <= m.EndSeq && rank.Repeats(event.Doc, f.Doc) {
			f.Score = max(f.Score, event.Score)
			return f, true
		}
	}
	return rank.Match{}, false
}

// The bot has no name among people.
func speakerName(role sessions.Role, nick string, id sessions.UserID) string {
	if role == sessions.RoleUser {
		return sessions.Speaker(nick, id)
	}
	return string(role)
}
