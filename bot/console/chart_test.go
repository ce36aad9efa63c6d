package console

import (
	"testing"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

// Compactions and flushes are marked in the order of time, the flushes on the line between two compactions.
func TestChartMarks(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 20, 8, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
	s := sessions.Session{CreatedAt: start, LastActiveAt: at(10), TotalTokens: 2000}
	cuts := []sessions.LogEntry{{CreatedAt: at(8), TokensBefore: 4000, TokensAfter: 1000}}
	flushes := []pages.Flush{{At: at(4), Saved: 3}, {At: at(9), Saved: 1}}
	c := newChart(s, cuts, flushes, 4000, 3600)
	if !c.Shown || c.Cuts != 1 || len(c.Marks) != 3 || c.Marks[0].Flush == nil || c.Marks[1].Flush != nil || c.Marks[2].Flush == nil {
		t.Fatalf("the marks are %+v", c.Marks)
	}
	empty, full := c.Points[0], c.Points[1]
	if got := c.Marks[0].Y; got != (empty.Y+full.Y)/2 {
		t.Errorf("the flush halfway to the compaction is at %v, between %v and %v", got, empty.Y, full.Y)
	}
	low, end := c.Points[2], c.Points[3]
	if got := c.Marks[2].Y; got != (low.Y+end.Y)/2 {
		t.Errorf("the flush after the compaction is at %v, between %v and %v", got, low.Y, end.Y)
	}
	if c := newChart(s, nil, flushes, 4000, 3600); !c.Shown || len(c.Marks) != 2 {
		t.Errorf("a session with flushes alone has the chart %+v", c)
	}
	if c := newChart(s, nil, nil, 4000, 3600); c.Shown {
		t.Error("a session without either has a chart")
	}
}
