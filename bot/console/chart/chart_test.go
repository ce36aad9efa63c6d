package chart

import (
	"math"
	"testing"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

// Between the sizes that the log has, the line grows with each event and rises by an undo. Marks are on it, in the order of time.
func TestChartMarks(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 20, 8, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
	s := sessions.Session{CreatedAt: start, LastActiveAt: at(10), TotalTokens: 4600}
	log := []sessions.LogEntry{
		{ID: 1, CreatedAt: at(8), TokensBefore: 4000, TokensAfter: 1000}, {ID: 2, Trigger: UndoTrigger, CreatedAt: at(9), TokensBefore: 1000, TokensAfter: 4000},
	}
	flushes := []pages.Flush{{At: at(7), Through: 30, Saved: 3}}
	all := newMoments(s, start, log, flushes)
	place(all, s, []int64{0, 30, 40, 44, 48})
	measure(all)
	for i, want := range []struct{ before, after float64 }{{0, 0}, {3000, 3000}, {4000, 1000}, {1300, 4300}, {4600, 4600}} {
		if m := all[i]; m.before != want.before || m.after != want.after {
			t.Errorf("moment %d has %v before and %v after, want %v", i, m.before, m.after, want)
		}
	}
	c := newChart(all, 4000, 3600)
	if !c.Shown || c.Cuts != 1 || !c.Undos || !c.Flushes || len(c.Marks) != 3 || c.Marks[0].Flush == nil || c.Marks[1].Undo || !c.Marks[2].Undo {
		t.Fatalf("the chart is %+v", c)
	}
	tokens := func(y float64) float64 { return (c.Bottom - y) / (c.Bottom - c.Lines[0].Y) * 4000 }
	for i, want := range []float64{3000, 1000, 4300} {
		if got := tokens(c.Marks[i].Y); math.Abs(got-want) > 1 {
			t.Errorf("mark %d is at %.0f tokens, want %.0f", i, got, want)
		}
	}
	if up := c.Points[4:6]; up[0].X != up[1].X || tokens(up[1].Y)-tokens(up[0].Y) < 2999 {
		t.Errorf("the undo is no step: %v", up)
	}
	if c := newChart(newMoments(s, start, nil, flushes), 4000, 3600); !c.Shown || len(c.Marks) != 1 {
		t.Errorf("a session with flushes alone has the chart %+v", c)
	}
	if c := newChart(newMoments(s, start, nil, nil), 4000, 3600); c.Shown {
		t.Error("a session without either has a chart")
	}
	late := newMoments(sessions.Session{CreatedAt: start, LastActiveAt: at(5)}, start, log, nil)
	if c := newChart(late, 4000, 3600); c.Through != at(9) || c.Points[len(c.Points)-1].X > c.Right {
		t.Errorf("a compaction after the last activity is behind the end %v of the chart", c.Through)
	}
}

// Each generation has a context of its own, so the chart begins with the newest one: the size at which an older one ended is unknown.
func TestChartBeginsWithTheGeneration(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 20, 8, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
	s := sessions.Session{CreatedAt: start, LastActiveAt: at(10), TotalTokens: 600, Gen: 1, BaseSeq: 40}
	flushes := []pages.Flush{{At: at(5), Through: 36}, {At: at(6), Through: 40}, {At: at(7), Through: 36}, {At: at(8), Through: 44}}
	for name, began := range map[string]time.Time{"its last event": at(6), "no event that is left": {}} {
		all := newMoments(s, began, nil, flushes)
		want := began
		if want.IsZero() {
			want = at(8)
		}
		if len(all) != 3 || all[1].at != at(8) || all[0].at != want {
			t.Fatalf("with %s the moments are %+v", name, all)
		}
		place(all, s, []int64{0, 45, 50})
		measure(all)
		if all[1].after != 300 {
			t.Errorf("with %s the flush is at %v tokens, want 300", name, all[1].after)
		}
	}
}
