// Package chart draws the size of a conversation's context over time, as the page of a session shows it.
package chart

import (
	"context"
	"slices"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

// The chart in units of its view box.
const (
	chartWidth, chartHeight = 720.0, 200.0
	chartLeft, chartBottom  = 12.0, 30.0
	chartTop                = 12.0
)

// Chart is the picture of the current generation; Shown is false for too few moments.
type Chart struct {
	Shown         bool
	Width, Height float64
	Left, Right   float64
	Points        []point // corners of the line
	Marks         []mark  // compactions, undos and flushes, in the order of time
	Cuts          int     // compactions among them
	Undos         bool
	Flushes       bool
	Renewed       bool    // an older generation is not on the chart
	Lines         []level // thresholds
	From, Through time.Time
	Bottom        float64
}

type point struct{ X, Y float64 }

type mark struct {
	point
	sessions.LogEntry              // the time alone of a flush
	Flush             *pages.Flush // nil: an attempt
	Undo              bool
}

type level struct {
	Kind   string // class of its line, and key of its words
	Tokens int
	Y      float64
}

// MaxCuts bounds the compactions and undos that are read.
const MaxCuts = 200

// chartMarks is for the newest compactions and undos.
const chartMarks = 60

// UndoTrigger is that of an undo's row in the log.
const UndoTrigger = "undo"

// moment is a corner of the chart's line. The log has the sizes of compactions alone.
type moment struct {
	at            time.Time
	entry         sessions.LogEntry
	flush         *pages.Flush
	events        int64 // the last one at that time
	known         bool
	before, after float64 // tokens of the context
	step          float64 // after - before
}

func newMoment(e sessions.LogEntry) moment {
	before, after := float64(e.TokensBefore), float64(e.TokensAfter)
	return moment{at: e.CreatedAt, entry: e, known: e.Trigger != UndoTrigger, before: before, after: after, step: after - before}
}

// newMoments takes committed compactions and undos of the generation, and flushes, the oldest first. began is the generation's
// beginning; zero: unknown. The first moment and the last are known.
func newMoments(s sessions.Session, began time.Time, log []sessions.LogEntry, flushes []pages.Flush) (all []moment) {
	if len(log) > chartMarks {
		log = log[len(log)-chartMarks:]
	}
	from := began
	if len(log) == chartMarks || len(log) > 0 && log[0].CreatedAt.Before(from) {
		from = log[0].CreatedAt
	} else {
		all = append(all, moment{at: from})
	}
	for _, e := range log {
		all = append(all, newMoment(e))
	}
	for _, f := range flushes {
		if f.Through > s.BaseSeq && !f.At.Before(from) {
			all = append(all, moment{at: f.At, flush: &f})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	all[0].known = true
	end, size := s.LastActiveAt, float64(s.TotalTokens)
	if last := all[len(all)-1].at; end.Before(last) {
		end = last
	}
	all = append(all, moment{at: end, known: true, before: size, after: size})
	if all[0].at.IsZero() {
		all[0].at = all[1].at
	}
	return all
}

// place sets the last event at each moment. A moment of the generation is not before its first event.
func place(all []moment, s sessions.Session, events []int64) {
	for i := range all {
		all[i].events = max(events[i], s.BaseSeq)
	}
}

// generationBegan returns the time of the last event before a generation, or zero if retention has deleted that event.
func generationBegan(ctx context.Context, lists pages.Lists, s sessions.Session) (time.Time, error) {
	if s.BaseSeq == 0 {
		return s.CreatedAt, nil
	}
	events, _, err := lists.Talk(ctx, s.Key, pages.Page{Limit: 1, Cursor: pages.Place{ID: s.BaseSeq + 1}.Cursor(pages.ListTalk)})
	if err != nil || len(events) == 0 {
		return time.Time{}, err
	}
	return events[0].CreatedAt, nil
}

// measure estimates the sizes between known ones: the context grows with each event.
func measure(all []moment) {
	last := 0
	for i := range all {
		if all[i].known {
			measureBetween(all[last : i+1])
			last = i
		}
	}
}

func measureBetween(part []moment) {
	a, b := part[0], part[len(part)-1]
	grown, stepped := b.before-a.after, 0.0
	for i := 1; i < len(part)-1; i++ {
		grown -= part[i].step
	}
	for i := 1; i < len(part)-1; i++ {
		m, share := &part[i], 0.0
		switch {
		case b.events > a.events:
			share = float64(m.events-a.events) / float64(b.events-a.events)
		case b.at.After(a.at):
			share = float64(m.at.Sub(a.at)) / float64(b.at.Sub(a.at))
		}
		m.before = max(a.after+grown*share+stepped, 0)
		m.after = max(m.before+m.step, 0)
		stepped += m.step
	}
}

// Read reads the current generation: /new empties the context, and the size before it is unknown.
func Read(ctx context.Context, lists pages.Lists, s sessions.Session, trigger, flushAt int) (Chart, error) {
	began, err := generationBegan(ctx, lists, s)
	if err != nil {
		return Chart{}, err
	}
	log, err := lists.Cuts(ctx, s.Key, s.BaseSeq+1, s.LastSeq, MaxCuts)
	if err != nil {
		return Chart{}, err
	}
	flushes, err := lists.Flushes(ctx, s.Key, chartMarks)
	if err != nil {
		return Chart{}, err
	}
	all := newMoments(s, began, log, flushes)
	times := make([]time.Time, len(all))
	for i, m := range all {
		times[i] = m.at
	}
	events, err := lists.Reached(ctx, s.Key, times)
	if err != nil {
		return Chart{}, err
	}
	place(all, s, events)
	measure(all)
	c := newChart(all, trigger, flushAt)
	c.Renewed = s.Gen > 0
	return c, nil
}

// newChart scales the moments into the picture. A compaction is a vertical step: two points at one time. The scale leaves room above
// the trigger, so that its line is visible in a small conversation.
func newChart(all []moment, trigger, flushAt int) Chart {
	c := Chart{
		Shown: len(all) > 2, Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartWidth - chartLeft, Bottom: chartHeight - chartBottom,
		From: all[0].at, Through: all[len(all)-1].at,
	}
	most := max(float64(trigger), 1)
	for _, m := range all {
		most = max(most, m.before, m.after)
	}
	span := max(c.Through.Sub(c.From).Seconds(), 1)
	x := func(t time.Time) float64 { return c.Left + (c.Right-c.Left)*t.Sub(c.From).Seconds()/span }
	y := func(tokens float64) float64 { return c.Bottom - (c.Bottom-chartTop)*tokens/(1.08*most) }
	for _, m := range all {
		before, after := point{x(m.at), y(m.before)}, point{x(m.at), y(m.after)}
		c.Points = append(c.Points, before)
		if after != before {
			c.Points = append(c.Points, after)
		}
		undo := m.entry.Trigger == UndoTrigger
		switch {
		case m.flush != nil:
			c.Flushes = true
		case m.entry.ID == 0:
			continue
		case undo:
			c.Undos = true
		default:
			c.Cuts++
		}
		e := m.entry
		e.CreatedAt = m.at
		c.Marks = append(c.Marks, mark{after, e, m.flush, undo})
	}
	c.Lines = []level{{"compact_at", trigger, y(float64(trigger))}, {"flush_at", flushAt, y(float64(flushAt))}}
	return c
}
