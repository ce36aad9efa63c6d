package sql

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

const (
	maxTerms      = 32   // of one query
	maxCandidates = 2000 // memories looked at, the newest first
	minShare      = 0.34 // of the terms, for a find of a search to count
	historyShare  = 0.5  // of the terms, for a find in the history to count
	maxBody       = 2000 // characters of an event's body that are read: of a longer one, the piece with the find
	bodyLead      = 200  // characters of that piece before the find
)

// Search implements memory.Store. A find's score is the share of the query's terms that it holds; of equals the newer
// comes first, and memories before events.
func (s *Store) Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	terms, limit := termsOf(q.Text), q.Limit
	if len(terms) == 0 || limit <= 0 {
		return nil, nil
	}
	memories, err := s.readable(ctx, r, patternsOf(terms), 0, maxCandidates)
	if err != nil {
		return nil, fmt.Errorf("searching memories for session %s: %w", r.Key, err)
	}
	events, err := s.q.EventsMatch(ctx, s.pool, &dbsqlc.EventsMatchParams{
		SessionKey: r.Key, Patterns: patternsOf(terms), MaxChars: maxBody, LeadChars: bodyLead, MaxRows: count(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("searching events of session %s: %w", r.Key, err)
	}
	var hits []memory.Hit
	for _, m := range memories {
		hits = append(hits, memory.Hit{
			Path: s.memoryPath(m), Content: m.Content, Who: string(m.SubjectID), At: m.CreatedAt,
			Score: share(terms, m.Content),
		})
	}
	for _, e := range events {
		hits = append(hits, memory.Hit{
			Path: eventPath(orZero(e.Seq)), Content: piece(e.Content, e.Place), At: e.CreatedAt,
			Who:   cmp.Or(sessions.Speaker(e.SenderNick, e.SenderID), string(e.Role)),
			Score: max(float64(e.Found)/float64(len(terms)), share(terms, e.Content)),
		})
	}
	hits = slices.DeleteFunc(hits, func(h memory.Hit) bool { return h.Score < minShare })
	slices.SortStableFunc(hits, func(a, b memory.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(limit, len(hits))], nil
}

// memoryPath is where memory_get finds a memory: memory/<scope>/<day>.md#<id>, the day as it was where the group is.
func (s *Store) memoryPath(m memory.Memory) string {
	return fmt.Sprintf("memory/%s/%s.md#%d", m.Scope, m.CreatedAt.In(s.loc).Format(time.DateOnly), m.ID)
}

// eventPath is where memory_get finds an event of the reader's session: session_events/<seq>.
func eventPath(seq int64) string { return fmt.Sprintf("session_events/%d", seq) }

// piece marks a text that was read from the middle of a body on.
func piece(text string, place int) string {
	if place > 1 {
		return "…" + text
	}
	return text
}

// Pinned implements memory.Store.
func (s *Store) Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	memories, err := s.readable(ctx, r, nil, 0, limit)
	if err != nil {
		return nil, fmt.Errorf("listing memories for session %s: %w", r.Key, err)
	}
	return memories, nil
}

// Memory returns one memory in force that the reader may see, or sessions.ErrNotFound.
func (s *Store) Memory(ctx context.Context, r memory.Reader, id int64) (memory.Memory, error) {
	memories, err := s.readable(ctx, r, nil, id, 1)
	if err == nil && len(memories) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return memory.Memory{}, fmt.Errorf("reading memory %d for session %s: %w", id, r.Key, err)
	}
	return memories[0], nil
}

// readable lists what a reader may see, newest first, each fact once: the same fact may have been learnt in a private
// chat and in a group.
func (s *Store) readable(
	ctx context.Context, r memory.Reader, patterns []string, id int64, limit int,
) ([]memory.Memory, error) {
	users := make([]string, 0, len(r.Users))
	for _, u := range r.Users {
		users = append(users, string(u))
	}
	rows, err := s.q.MemoriesReadable(ctx, s.pool, &dbsqlc.MemoriesReadableParams{
		TeamID: string(r.Robot), GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key),
		UserIds: users, Private: r.Private, Patterns: append([]string{}, patterns...), ID: id, MaxRows: count(limit),
	})
	if err != nil {
		return nil, err
	}
	memories := make([]memory.Memory, 0, len(rows))
	seen := make(map[string]bool, len(rows))
	for i := range rows {
		fact := normal(rows[i].Content)
		if !seen[fact] {
			seen[fact] = true
			memories = append(memories, toMemory(&rows[i]))
		}
	}
	return memories, nil
}

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

// share is how many of the terms a text holds, from 0 to 1.
func share(terms []string, text string) float64 {
	folded := fold(text)
	n := 0
	for _, t := range terms {
		if strings.Contains(folded, t) {
			n++
		}
	}
	return float64(n) / float64(len(terms))
}
