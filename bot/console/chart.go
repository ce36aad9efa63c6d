package console

import (
	"slices"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

// The chart in units of its view box.
const (
	chartWidth, chartHeight = 720.0, 200.0
	chartLeft, chartBottom  = 8.0, 30.0
	chartTop                = 12.0
)

type chart struct {
	Shown         bool
	Width, Height float64
	Left, Right   float64
	Points        []point // corners of the line
	Marks         []mark  // compactions and flushes, in the order of time
	Cuts          int     // compactions among them
	Lines         []level // thresholds
	From, Through time.Time
	Bottom        float64
}

type point struct{ X, Y float64 }

type mark struct {
	point
	sessions.LogEntry              // the time alone of a flush
	Flush             *pages.Flush // nil: a compaction
}

type level struct {
	Name   string // key of the catalog
	Tokens int
	Y      float64
	Shift  int // shift of its label: above the upper line, below the lower one
}

// chartMarks is for the newest compactions.
const chartMarks = 60

// newChart takes committed compactions and flushes, the oldest first. Between two compactions only the ends are known.
func newChart(s sessions.Session, cuts []sessions.LogEntry, flushes []pages.Flush, trigger, flushAt int) chart {
	if len(cuts) > chartMarks {
		cuts = cuts[len(cuts)-chartMarks:]
	}
	c := chart{
		Shown: len(cuts)+len(flushes) > 0, Cuts: len(cuts), Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartWidth - 8, Bottom: chartHeight - chartBottom,
		From: s.CreatedAt, Through: s.LastActiveAt,
	}
	most := max(s.TotalTokens, trigger)
	for _, e := range cuts {
		most = max(most, e.TokensBefore, e.TokensAfter)
		if e.CreatedAt.After(c.Through) {
			c.Through = e.CreatedAt
		}
	}
	if len(cuts) > 0 && cuts[0].CreatedAt.Before(c.From) || len(cuts) == chartMarks {
		c.From = cuts[0].CreatedAt
	}
	span := max(c.Through.Sub(c.From).Seconds(), 1)
	x := func(t time.Time) float64 {
		return c.Left + (c.Right-c.Left)*min(max(t.Sub(c.From).Seconds()/span, 0), 1)
	}
	y := func(tokens int) float64 {
		return c.Bottom - (c.Bottom-chartTop)*float64(tokens)/(1.08*float64(max(most, 1)))
	}
	if c.From.Equal(s.CreatedAt) {
		c.Points = append(c.Points, point{x(s.CreatedAt), y(0)})
	}
	for _, e := range cuts {
		c.Points = append(c.Points, point{x(e.CreatedAt), y(e.TokensBefore)}, point{x(e.CreatedAt), y(e.TokensAfter)})
		c.Marks = append(c.Marks, mark{point{x(e.CreatedAt), y(e.TokensAfter)}, e, nil})
	}
	c.Points = append(c.Points, point{x(s.LastActiveAt), y(s.TotalTokens)})
	for _, f := range flushes {
		if !f.At.Before(c.From) {
			c.Marks = append(c.Marks, mark{c.onLine(x(f.At)), sessions.LogEntry{CreatedAt: f.At}, &f})
		}
	}
	slices.SortStableFunc(c.Marks, func(a, b mark) int { return a.CreatedAt.Compare(b.CreatedAt) })
	c.Lines = []level{{"chart.compact_at", trigger, y(trigger), -4}, {"chart.flush_at", flushAt, y(flushAt), 13}}
	return c
}

// onLine returns the point of the line at a place; where the line falls, its upper end.
func (c chart) onLine(x float64) point {
	for i := 1; i < len(c.Points); i++ {
		a, b := c.Points[i-1], c.Points[i]
		if x <= b.X && b.X > a.X {
			return point{x, a.Y + (b.Y-a.Y)*max(x-a.X, 0)/(b.X-a.X)}
		}
	}
	return point{x, c.Points[len(c.Points)-1].Y}
}
