package retention

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/sessions"
)

// expiry is a storage with a number of batches of ten rows for each session, and none of other data.
type expiry struct {
	sessions.Expiry
	batches map[sessions.Key]int
	follows bool
	calls   []string
	fail    error
	after   func() // runs after a batch of events
}

func (e *expiry) leads(context.Context) (bool, error) { return !e.follows, nil }

func (e *expiry) ExpiredSessions(_ context.Context, _ time.Duration, after sessions.Key, limit int) ([]sessions.Key, error) {
	var keys []sessions.Key
	for key := range e.batches {
		if key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), limit)], nil
}

func (e *expiry) ExpireEvents(_ context.Context, key sessions.Key, _ time.Duration) (int, error) {
	if e.batches[key] == 0 {
		return 0, e.fail
	}
	e.batches[key]--
	if e.after != nil {
		e.after()
	}
	return 10, nil
}

func (e *expiry) ExpireReplies(context.Context, time.Duration) (int, error) {
	e.calls = append(e.calls, Replies)
	return 0, nil
}

func (e *expiry) ExpireSentFiles(_ context.Context, period time.Duration) (int, error) {
	e.calls = append(e.calls, SentFiles+" "+period.String())
	return 0, nil
}

func (e *expiry) ExpireSchedules(context.Context, time.Duration) (int, error) {
	e.calls = append(e.calls, Schedules)
	return 0, nil
}

func (e *expiry) ExpireApprovals(context.Context, time.Duration) (int, error) {
	e.calls = append(e.calls, Approvals)
	return 0, nil
}

func newCleaner(e *expiry, r sessions.Retention) *Cleaner {
	return New(Config{Store: e, Leads: e.leads, Periods: func() sessions.Retention { return r }, Metrics: prometheus.NewRegistry()})
}

// A run deletes batches until none is left, and leaves data without a period alone.
func TestRunDeletesAllBatches(t *testing.T) {
	t.Parallel()
	e := &expiry{batches: map[sessions.Key]int{"a": 3, "b": 0, "c": 2}}
	metrics := prometheus.NewRegistry()
	c := New(Config{Store: e, Leads: e.leads, Metrics: metrics, Periods: func() sessions.Retention {
		return sessions.Retention{Events: time.Hour, Replies: time.Hour}
	}})
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	if counted[Events] != 50 || counted[Replies] != 0 || e.batches["a"]+e.batches["c"] != 0 {
		t.Errorf("counted are %v, want 50 events; left %v", counted, e.batches)
	}
	if !slices.Equal(e.calls, []string{Replies, SentFiles + " 1h0m0s", Schedules, Approvals}) {
		t.Errorf("rows deleted of %v, want of those with their period", e.calls)
	}
}

// Sessions beyond the first page are cleaned as well.
func TestRunReadsAllPages(t *testing.T) {
	t.Parallel()
	e := &expiry{batches: map[sessions.Key]int{}}
	for i := range sessionPage + 5 {
		e.batches[sessions.Key(rune('一'+i))] = 1
	}
	c := newCleaner(e, sessions.Retention{Events: time.Hour})
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, n := range e.batches {
		if n > 0 {
			t.Errorf("session %s is not cleaned", key)
		}
	}
}

func TestErrorsEndARun(t *testing.T) {
	t.Parallel()
	e := &expiry{batches: map[sessions.Key]int{"a": 1}, fail: errors.New("refused")}
	if err := newCleaner(e, sessions.Retention{Events: time.Hour}).Run(t.Context()); !errors.Is(err, e.fail) {
		t.Errorf("the run ended with %v", err)
	}
}

// Files that no reply will send go after 7 days, also where all other data is kept, or replies longer.
func TestFilesOfRepliesAreBounded(t *testing.T) {
	t.Parallel()
	for _, replies := range []time.Duration{0, 30 * 24 * time.Hour} {
		e := &expiry{}
		task := newCleaner(e, sessions.Retention{Replies: replies}).Task()
		if !task.Ready() {
			t.Errorf("with replies kept for %v the task does not run", replies)
		}
		if err := task.Do(t.Context()); err != nil || !slices.Contains(e.calls, SentFiles+" 168h0m0s") {
			t.Errorf("with replies kept for %v the run deleted %v, %v", replies, e.calls, err)
		}
	}
}

// The leader runs at once, and then rests for a tenth of the shortest period, an hour at most.
func TestTaskRests(t *testing.T) {
	t.Parallel()
	periods := sessions.Retention{Events: 30 * 24 * time.Hour}
	c := New(Config{Store: &expiry{}, Leads: (&expiry{}).leads, Periods: func() sessions.Retention { return periods }, Metrics: prometheus.NewRegistry()})
	task := c.Task()
	if !task.Ready() {
		t.Error("the task does not run at once")
	}
	if err := task.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if task.Ready() {
		t.Error("the task does not rest after a run")
	}
	if periods.Events = time.Nanosecond * 10; !task.Ready() {
		t.Error("a period that became shorter waits for the pause of the former one")
	}
	for period, want := range map[time.Duration]time.Duration{10 * time.Second: time.Second, 30 * 24 * time.Hour: time.Hour} {
		if got := pause(sessions.Retention{Audit: 400 * 24 * time.Hour, Events: period}); got != want {
			t.Errorf("a period of %v has pauses of %v, want %v", period, got, want)
		}
	}
}

// A period that a reload ends, and a lead that goes to another replica, end a run before its next batch.
func TestRunIsStopped(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*expiry, *sessions.Retention){
		"the period ends": func(_ *expiry, r *sessions.Retention) { r.Events = 0 },
		"the lead ends":   func(e *expiry, _ *sessions.Retention) { e.follows = true },
	} {
		periods := sessions.Retention{Events: time.Hour, Replies: time.Hour}
		e := &expiry{batches: map[sessions.Key]int{"a": 3, "b": 3}}
		e.after = func() { end(e, &periods) }
		c := New(Config{Store: e, Leads: e.leads, Periods: func() sessions.Retention { return periods }, Metrics: prometheus.NewRegistry()})
		if err := c.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e.batches["a"] != 2 || e.batches["b"] != 3 {
			t.Errorf("%s: batches are left %v, want one deleted", name, e.batches)
		}
		if replies := len(e.calls) > 0; replies == e.follows {
			t.Errorf("%s: replies are deleted: %t", name, replies)
		}
	}
}
