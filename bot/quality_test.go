package bot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/bottest"
	"ebb/memory"
	"ebb/memory/show"
)

// The model's view of a search, and the number of hits that it has to read.
const (
	qualityHits = 8
	qualityRank = 3
	foreignHits = 20
	leastPassed = 10 // compactions of a group's session
)

// A hundred facts are said in a talk of thousands of messages, in Chinese and English, in two groups and two private
// chats at once. Twenty times one of them is corrected. At least ten compactions pass over each group, and their
// summaries have none of the facts. Then every fact is asked for in two ways. It stands in the view or is among the
// first three hits of a search. Its last value alone is shown, and no unauthorised reader finds it.
func TestQualityOverTime(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	bottest.Want(t, "facts planted", len(s.plants), 100)
	s.hold(s.scripts())

	var views [len(rooms)]string
	var readers [len(rooms)]memory.Reader
	for at := range rooms {
		views[at], readers[at] = s.probe(at)
	}
	s.passed()
	q := &quality{stage: s, views: views, readers: readers, score: map[string]*score{}}
	for i, p := range s.plants {
		q.found(p)
		q.kept(p)
		if len(p.statements) > 1 {
			q.superseded(p, s.saved[i])
		}
	}
	q.report()
}

// passed checks how the talk went.
func (s *stage) passed() {
	t := s.place.t
	t.Helper()
	db := s.db()
	for at, r := range rooms {
		committed := one[int](t, db, "SELECT count(*) FROM compaction_log WHERE session_key = $1 AND outcome = 'committed'", r.key())
		flushes := one[int](t, db, "SELECT count(*) FROM memory_flushes WHERE session_key = $1", r.key())
		t.Logf("room %d: %d messages, %d compactions, %d flushes", at, r.length, committed, flushes)
		if len(r.people) > 1 && committed < leastPassed {
			t.Errorf("%d compactions passed over room %d, want %d", committed, at, leastPassed)
		}
	}
	bottest.Want(t, "flushes owed", one[int](t, db, "SELECT count(*) FROM flush_debts"), 0)
	bottest.Want(t, "facts that a flush had no room for", len(s.missed), 0)
	t.Logf("%d memories in force, %d superseded", one[int](t, db, "SELECT count(*) FROM memories WHERE superseded_by IS NULL"),
		one[int](t, db, "SELECT count(*) FROM memories WHERE superseded_by IS NOT NULL"))
}

// quality asks for facts.
type quality struct {
	*stage

	views   [len(rooms)]string
	readers [len(rooms)]memory.Reader
	score   map[string]*score // by language
}

// tally counts questions.
type score struct{ asked, first, found, viewed, lost int }

func (q *quality) search(at int, question string, limit int) []memory.Hit {
	t := q.place.t
	t.Helper()
	hits, err := q.reader().Search.Search(t.Context(), q.readers[at], memory.Query{Text: question, Limit: limit})
	if err != nil {
		t.Fatalf("search for %q: %v", question, err)
	}
	return hits
}

// found checks that each question finds the fact.
func (q *quality) found(p plant) {
	t := q.place.t
	t.Helper()
	answer := q.answer(p, p.last())
	for _, question := range p.asks {
		n := q.score[p.lang]
		if n == nil {
			n = &score{}
			q.score[p.lang] = n
		}
		n.asked++
		hits := q.search(p.room, question, qualityHits)
		rank := slices.IndexFunc(hits, func(h memory.Hit) bool { return !h.Outdated && holds(h.Content, answer) })
		viewed := slices.ContainsFunc(strings.Split(q.views[p.room], "\n"), func(l string) bool { return holds(l, answer) })
		switch {
		case rank == 0:
			n.first++
			fallthrough
		case rank > 0 && rank < qualityRank:
			n.found++
		}
		switch {
		case viewed:
			n.viewed++
		case rank < 0 || rank >= qualityRank:
			n.lost++
			t.Errorf("room %d: %q does not find %q: rank %d of\n%s", p.room, question, answer, rank+1, listed(hits))
		}
	}
}

// listed writes hits for a failed test.
func listed(hits []memory.Hit) string {
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "\t%.2f %s", h.Score, show.HitLine(h, time.UTC))
	}
	return b.String()
}

// kept checks that no unauthorised room gets the fact. A room's statement is read there, and people's statements about
// themselves by themselves alone with the bot too.
func (q *quality) kept(p plant) {
	t := q.place.t
	t.Helper()
	for at, r := range rooms {
		if at == p.room || p.own && len(r.people) == 1 && r.people[0] == p.by {
			continue
		}
		for _, statement := range p.statements {
			answer := q.answer(p, statement)
			for _, question := range append(p.asks[:], statement.content) {
				for _, h := range q.search(at, question, foreignHits) {
					if holds(h.Content, answer) {
						t.Errorf("room %d reads of room %d: %s", at, p.room, show.HitLine(h, time.UTC))
					}
				}
			}
			if holds(q.views[at], answer) {
				t.Errorf("room %d is shown %q of room %d", at, answer, p.room)
			}
		}
	}
}

// superseded checks that only the last value of a corrected fact is shown. No memory among the hits has a former value,
// and an event with one is marked, or comes after the value in force. The history of the value can still be read.
func (q *quality) superseded(p plant, saved int) {
	t := q.place.t
	t.Helper()
	now := q.answer(p, p.last())
	for _, question := range p.asks {
		hits := q.search(p.room, question, foreignHits)
		newest := slices.IndexFunc(hits, func(h memory.Hit) bool { return h.MemoryID != 0 && holds(h.Content, now) })
		if newest < 0 {
			t.Errorf("room %d: %q finds no memory of %q:\n%s", p.room, question, now, listed(hits))
			continue
		}
		for _, statement := range p.statements[:len(p.statements)-1] {
			before := q.answer(p, statement)
			if slices.Equal(before, now) {
				continue // it came back
			}
			for i, h := range hits {
				if holds(h.Content, before) && (h.MemoryID != 0 || !h.Outdated && i < newest) {
					t.Errorf("room %d: %q finds the former %q at %d:\n%s", p.room, question, before, i+1, listed(hits))
				}
			}
		}
		values, err := q.reader().Facts.Values(t.Context(), q.readers[p.room], hits[newest].MemoryID)
		if err != nil {
			t.Fatal(err)
		}
		if len(values) != saved {
			t.Errorf("%q has %d values in its history, want %d: %+v", now, len(values), saved, values)
		}
	}
}

// report logs the figures.
func (q *quality) report() {
	t := q.place.t
	t.Helper()
	for _, lang := range []string{"zh", "en"} {
		n := q.score[lang]
		t.Logf("%s: %d questions; by search alone recall@1 %.3f, recall@3 %.3f; %d stand in the view; lost %d",
			lang, n.asked, float64(n.first)/float64(n.asked), float64(n.found)/float64(n.asked), n.viewed, n.lost)
	}
}
