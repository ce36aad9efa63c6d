package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/index"
	"ebb/sql/pg"
)

const (
	maxTerms      = 32         // terms of one query
	historyShare  = 0.5        // share of terms in a match
	maxBody       = 2000       // shown characters of a body
	bodyLead      = 10         // divisor: a tenth of a long body's shown characters precede the first hit
	historyWindow = 5000       // events of one read
	historyBytes  = 20_000_000 // bytes of these
	historyOlder  = 200        // older events from the index
)

// History implements memory.Searcher. An event matches when it holds at least half of the query's terms. The newest part
// of a long log is compared word by word. Older events must have all the words.
func (s *Store) History(ctx context.Context, key sessions.Key, q memory.LogQuery) (memory.LogMatches, error) {
	finds, err := s.searchHistory(ctx, key, q)
	if err != nil {
		return memory.LogMatches{}, fmt.Errorf("reading the history: %w", err)
	}
	return finds, nil
}

// searchHistory first reads the newest window, bounded in rows and bytes, which costs the same in a log of any length. Only if that has too few
// finds it asks the index for older ones.
func (s *Store) searchHistory(ctx context.Context, key sessions.Key, q memory.LogQuery) (memory.LogMatches, error) {
	terms := termsOf(q.Words)
	p := dbsqlc.EventsHistoryParams{
		SessionKey: key, FromSeq: max(1, q.From), ThroughSeq: cmp.Or(q.Through, math.MaxInt64), Since: q.Since, Until: q.Until,
		Patterns: patternsOf(terms), MaxChars: pg.Clamp(q.Chars), LeadChars: pg.Clamp(q.Chars / bodyLead), Seqs: []int64{},
		MinFound: int(math.Ceil(historyShare * float64(len(terms)))), MaxRows: pg.Clamp(q.Limit),
		Model: string(q.Reads), Withheld: sessions.WithheldText,
	}
	if p.Until.IsZero() {
		p.Until = time.Now().AddDate(10, 0, 0)
	}
	window, err := s.db.Q.EventsWindow(ctx, s.db.Pool, &dbsqlc.EventsWindowParams{
		SessionKey: key, FirstSeq: p.FromSeq, ThroughSeq: p.ThroughSeq, Since: p.Since, Until: p.Until,
		MaxRows: historyWindow, MaxBytes: historyBytes,
	})
	if err != nil || window == 0 {
		return memory.LogMatches{}, err
	}
	first := p.FromSeq
	p.FromSeq = window
	var out memory.LogMatches
	if out.Events, err = s.listMatches(ctx, p); err != nil || window == first {
		return out, err
	}
	if more, err := s.db.Q.EventsWindow(ctx, s.db.Pool, &dbsqlc.EventsWindowParams{
		SessionKey: key, FirstSeq: first, ThroughSeq: window - 1, Since: p.Since, Until: p.Until, MaxRows: 1, MaxBytes: 1,
	}); err != nil || more == 0 {
		return out, err
	}
	out.From = window
	if len(terms) == 0 || len(out.Events) >= q.Limit {
		return out, nil
	}
	p.FromSeq, p.ThroughSeq, p.MaxRows = first, window-1, pg.Clamp(q.Limit-len(out.Events))
	older, err := s.olderFinds(ctx, p, q.Words)
	out.Events = append(out.Events, older...)
	return out, err
}

// olderFinds have all the words.
func (s *Store) olderFinds(ctx context.Context, p dbsqlc.EventsHistoryParams, words string) ([]memory.LogMatch, error) {
	keys := rank.Keys(0, words)
	hashes := rank.TermHashes(keys)
	terms, all := make([]int64, len(hashes)), make([]int, len(hashes))
	for i, h := range hashes {
		terms[i], all[i] = int64(h), i
	}
	log, err := s.db.Q.EventIndexRead(ctx, s.db.Pool, p.SessionKey)
	if err != nil {
		return nil, err
	}
	if log.ThroughSeq < p.ThroughSeq || log.Version != index.TermsVersion {
		s.logs.NoteCut(p.SessionKey)
	}
	f, err := s.logs.PlacesOf(ctx, p.SessionKey, terms)
	if err != nil {
		return nil, err
	}
	for _, place := range slices.Backward(f.All(all...)) {
		if place >= p.FromSeq && place <= p.ThroughSeq && len(p.Seqs) < historyOlder {
			p.Seqs = append(p.Seqs, place)
		}
	}
	if len(p.Seqs) == 0 {
		return nil, nil
	}
	return s.listMatches(ctx, p)
}

func (s *Store) listMatches(ctx context.Context, p dbsqlc.EventsHistoryParams) ([]memory.LogMatch, error) {
	rows, err := s.db.Q.EventsHistory(ctx, s.db.Pool, &p)
	if err != nil {
		return nil, err
	}
	finds := make([]memory.LogMatch, 0, len(rows))
	for _, r := range rows {
		finds = append(finds, memory.LogMatch{Cut: r.Chars > p.MaxChars, Event: sessions.Event{
			ID: r.ID, Seq: pg.OrZero(r.Seq), Key: p.SessionKey, Role: r.Role, Content: excerptAround(r.Content, r.Place),
			SenderID: r.SenderID, SenderNick: r.SenderNick, ToolName: r.ToolName, State: sessions.Done, CreatedAt: r.CreatedAt,
		}})
	}
	return finds, nil
}

// A Latin word or number is one term, and a run of Chinese characters is one for each bigram, since it has no word
// boundaries. A single character is a term.
func termsOf(query string) []string {
	var terms []string
	add := func(t string) {
		if len(terms) < maxTerms && !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	}
	for _, run := range text.Runs(text.Fold(query)) {
		parts := []string{run.Text}
		if !run.Wide {
			parts = text.Parts(run.Text)
		} else if rs := []rune(run.Text); len(rs) > 1 {
			parts = nil
			for i := range len(rs) - 1 {
				parts = append(parts, string(rs[i:i+2]))
			}
		}
		for _, p := range parts {
			add(p)
		}
	}
	return terms
}

// Terms hold only letters and digits, which need no escape in ILIKE.
func patternsOf(terms []string) []string {
	patterns := make([]string, 0, len(terms))
	for _, t := range terms {
		patterns = append(patterns, "%"+t+"%")
	}
	return patterns
}

func excerptAround(text string, place int) string {
	if place > 1 {
		return "…" + text
	}
	return text
}

// Range implements memory.Searcher.
func (s *Store) Range(
	ctx context.Context, key sessions.Key, from, through int64, limit int,
) ([]sessions.Event, error) {
	rows, err := s.db.Q.EventsRange(ctx, s.db.Pool, &dbsqlc.EventsRangeParams{
		SessionKey: key, AfterSeq: from, ThroughSeq: through, MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("reading events %d to %d: %w", from+1, through, err)
	}
	return convert.RangeEvents(rows)
}
