package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
)

// leastMonth is the least time of a refused month.
const leastMonth = 2 * time.Second

// useUpMonth makes DingTalk refuse all counted calls for a while. Then the organization buys more, and an operator
// resumes calls. It returns at once.
func (w injector) useUpMonth(ctx context.Context, t fault) error {
	m := &w.months
	m.mu.Lock()
	if m.refused++; m.refused == 1 {
		m.spans = append(m.spans, rig.Interval{From: time.Now(), To: endOfTime})
		w.sim.LeaveAPICalls(0)
	}
	m.mu.Unlock()
	m.running.Go(func() {
		timer := time.NewTimer(leastMonth + t.d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-m.over:
		}
		m.mu.Lock()
		if m.refused--; m.refused == 0 {
			m.spans[len(m.spans)-1].To = time.Now()
			w.sim.LeaveAPICalls(callsOfRun)
		}
		m.mu.Unlock()
		if err := w.resumeCalls(ctx); err != nil && ctx.Err() == nil {
			w.addBroken("month used up: %v", err)
		}
	})
	return nil
}

// resumeTries bounds the attempts of an operator, one in half a second.
const resumeTries = 60

// resumeCalls repeats an operator's command while the database is in trouble.
func (w injector) resumeCalls(ctx context.Context) error {
	for tries := 1; ; tries++ {
		out, err := w.runBot(ctx, "calls", "resume")
		if err == nil || strings.Contains(out, "no call is counted") {
			return nil
		}
		if tries == resumeTries || !rig.WaitUntil(ctx, time.Now().Add(500*time.Millisecond)) {
			return fmt.Errorf("resume calls: %w: %s", err, out)
		}
	}
}

func (m *months) end() {
	close(m.over)
	m.running.Wait()
}

// resumeRefused resumes calls once more after a late refusal. A gateway that stood still may learn of it after the
// operator's command.
func (w injector) resumeRefused(ctx context.Context) error {
	if len(w.months.copyAll()) == 0 {
		return nil
	}
	out, err := w.runBot(ctx, "calls", "list", "--json", "--limit", "1")
	if err != nil {
		return fmt.Errorf("list calls: %w: %s", err, out)
	}
	var month struct {
		RefusedUntil *time.Time `json:"refused_until"`
	}
	if out = strings.TrimSpace(out); out == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(out), &month); err != nil {
		return fmt.Errorf("reading the list of calls: %w", err)
	}
	if month.RefusedUntil == nil {
		return nil
	}
	return w.resumeCalls(ctx)
}

func (m *months) copyAll() []rig.Interval {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]rig.Interval(nil), m.spans...)
}

// fewestMeanwhile messages in a used-up month need at least one answer meanwhile.
const fewestMeanwhile = 20

// checkMonths: people get answers while DingTalk refuses the month's calls, since webhooks do not count. A time
// without the database shows nothing.
func (e *evidence) checkMonths(f *findings) {
	asked := 0
	for _, span := range e.months {
		for _, r := range e.replies {
			if r.Via == "webhook" && span.Contains(r.Time) {
				f.meanwhile++
			}
		}
		if countOverlaps(e.away, span)+countOverlaps(e.rough, span) > 0 {
			continue
		}
		for _, u := range e.said {
			if span.Contains(u.pushed) {
				asked++
			}
		}
	}
	if f.meanwhile == 0 && asked >= fewestMeanwhile {
		f.addBroken("the month's calls were used up %d times, %d messages came meanwhile, and no webhook brought an answer", len(e.months), asked)
	}
}
