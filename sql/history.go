package sql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

const (
	maxTerms     = 32   // of one query
	historyShare = 0.5  // of the terms, for a find in the history to count
	maxBody      = 2000 // characters of an event's body that are read: of a longer one, the piece with the find
	bodyLead     = 200  // characters of that piece before the find
)

// History implements memory.Store. An event is found by a query when it holds at least half of its terms. Of events it
// gives what is shown: their place, time, speaker and, of a long body, the piece around the first find.
func (s *Store) History(
	ctx context.Context, key sessions.Key, query string, before int64, limit int,
) ([]sessions.Event, error) {
	terms := termsOf(query)
	rows, err := s.q.EventsHistory(ctx, s.pool, &dbsqlc.EventsHistoryParams{
		SessionKey: key, BeforeSeq: before, Patterns: patternsOf(terms), MaxChars: maxBody, LeadChars: bodyLead,
		MinFound: int(math.Ceil(historyShare * float64(len(terms)))), MaxRows: count(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("reading the history of session %s: %w", key, err)
	}
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		events = append(events, sessions.Event{
			ID: r.ID, Seq: orZero(r.Seq), Key: key, Role: r.Role, Content: piece(r.Content, r.Place),
			SenderID: r.SenderID, SenderNick: r.SenderNick, ToolName: r.ToolName, State: sessions.Done, CreatedAt: r.CreatedAt,
		})
	}
	return events, nil
}

// termsOf are the words of a query, folded, each once: a Latin word or number is one, a run of Chinese characters is
// one for each two that stand side by side, for nothing tells where its words end. A character alone is one itself.
func termsOf(query string) []string {
	var terms []string
	add := func(t string) {
		if len(terms) < maxTerms && !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	}
	for _, word := range strings.FieldsFunc(fold(query), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		for _, run := range runsOf([]rune(word)) {
			if run[0] < 0x2E80 || len(run) == 1 {
				add(string(run))
				continue
			}
			for i := range len(run) - 1 {
				add(string(run[i : i+2]))
			}
		}
	}
	return terms
}

// runsOf cuts a word where Latin and Chinese characters meet.
func runsOf(word []rune) [][]rune {
	var runs [][]rune
	start := 0
	for i := 1; i <= len(word); i++ {
		if i == len(word) || (word[i] < 0x2E80) != (word[i-1] < 0x2E80) {
			runs = append(runs, word[start:i])
			start = i
		}
	}
	return runs
}

// patternsOf makes patterns for ILIKE that find each term anywhere. Terms hold letters and digits only, nothing that
// a pattern would read as a sign.
func patternsOf(terms []string) []string {
	patterns := make([]string, 0, len(terms))
	for _, t := range terms {
		patterns = append(patterns, "%"+t+"%")
	}
	return patterns
}

// piece marks a text that was read from the middle of a body on.
func piece(text string, place int) string {
	if place > 1 {
		return "…" + text
	}
	return text
}
