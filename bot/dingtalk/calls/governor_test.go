package calls

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// The governor grants calls as far as the month permits, and a refusal names the level and the next month.
func TestLevelsFallWithTheMonth(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		g := newGovernor(s, 60, newClock())
		granted := map[Need]int{}
		for _, need := range []Need{Frame, Reminder, Card, Finish} {
			apis := []API{CardStream}
			if need == Card {
				apis = []API{CardCreate, CardStream}
			}
			for {
				_, err := g.Reserve(t.Context(), need, apis...)
				refused, ok := errors.AsType[*RefusedError](err)
				if err != nil && !ok {
					t.Fatal(err)
				}
				if err != nil {
					if next := time.Date(2026, 12, 1, 0, 0, 0, 0, shanghai); !refused.Until.Equal(next) || refused.Level != g.Level() || refused.Level == Streaming {
						t.Errorf("refused with %+v at level %s", refused, g.Level())
					}
					break
				}
				granted[need] += len(apis)
			}
		}
		if want := map[Need]int{Frame: 45, Reminder: 5, Card: 4, Finish: 6}; fmt.Sprint(granted) != fmt.Sprint(want) {
			t.Errorf("granted %v, want %v", granted, want)
		}
		if left, bounded := g.Status().Left(); left != 0 || !bounded || g.Level() != Spent {
			t.Errorf("%d left, level %s", left, g.Level())
		}
	})
}

// A level says which calls are permitted at once: an update, a card of two calls, a single call.
func TestLevelOfCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		quota, calls int64
		want         Level
	}{
		{0, 1 << 40, Streaming},
		{1, 0, Webhook},
		{1, 1, Spent},
		{5, 0, Webhook},
		{5, 4, Webhook},
		{5, 5, Spent},
		{7, 0, Streaming},
		{7, 1, Streaming},
		{7, 2, Webhook},
		{7, 7, Spent},
		{60, 44, Streaming},
		{60, 45, Unstreamed},
		{60, 53, Unstreamed},
		{60, 54, Webhook},
		{60, 59, Webhook},
		{60, 60, Spent},
		{60, 70, Spent},
		{5000, 3749, Streaming},
		{5000, 3750, Unstreamed},
		{5000, 4748, Unstreamed},
		{5000, 4749, Webhook},
		{5000, 5000, Spent},
	} {
		if got := LevelOf(tt.calls, tt.quota); got != tt.want {
			t.Errorf("after %d of %d calls the level is %s, want %s", tt.calls, tt.quota, got, tt.want)
		}
	}
}

// A lower level and the return in the next month are logged once over all replicas.
func TestStepsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		ctx, count := logged(t.Context())
		c := newClock()
		var replicas []*Governor
		for range 3 {
			replicas = append(replicas, newGovernor(s, 20, c))
		}
		var all sync.WaitGroup
		for _, g := range replicas {
			all.Go(func() {
				for {
					if _, err := g.Reserve(ctx, Finish, GroupSend); err != nil {
						break
					}
				}
			})
		}
		all.Wait()
		lowered := count("the level was lowered")
		if lowered < 1 || lowered > 3 || count(`"level":"spent"`) != 1 {
			t.Errorf("%d lower levels and %d ends were logged", lowered, count(`"level":"spent"`))
		}
		restarted := newGovernor(s, 20, c)
		if err := restarted.Refresh(ctx); err != nil || restarted.Level() != Spent {
			t.Errorf("after a restart the level is %s, %v", restarted.Level(), err)
		}
		c.set(time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)) // midnight in Shanghai
		for _, g := range append(replicas, restarted) {
			if err := g.Refresh(ctx); err != nil || g.Level() != Streaming || g.Status().Month != "2026-12" {
				t.Errorf("in the next month the state is %+v, %v", g.Status(), err)
			}
		}
		if now := count("the level was lowered"); now != lowered || count("a new month began") != 1 {
			t.Errorf("later %d lower levels and %d new months were logged", now-lowered, count("a new month began"))
		}
		c.set(time.Date(2026, 12, 31, 16, 0, 0, 0, time.UTC))
		if err := restarted.Refresh(ctx); err != nil || count("a new month began") != 1 {
			t.Errorf("a month after plenty is logged %d times, %v", count("a new month began"), err)
		}
	})
}

// A quota that is raised replica by replica brings the levels back for those that have it, whatever the others count and report.
// Their own limit stays as it is.
func TestRaisedQuotaBesideOlderReplicas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		c := newClock()
		before := newGovernor(s, 10, c)
		for range 10 {
			if _, err := before.Reserve(t.Context(), Finish, GroupSend); err != nil {
				t.Fatal(err)
			}
		}
		after := newGovernor(s, 1000, c)
		for _, g := range []*Governor{after, before, after} {
			if err := g.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := after.Reserve(t.Context(), Frame, CardStream); err != nil || after.Level() != Streaming {
			t.Errorf("the raised quota: %v at level %s", err, after.Level())
		}
		if _, err := before.Reserve(t.Context(), Finish, GroupSend); !IsRefused(err) || before.Level() != Spent {
			t.Errorf("the quota before: %v at level %s", err, before.Level())
		}
		if restarted := newGovernor(s, 1000, c); restarted.Refresh(t.Context()) != nil || restarted.Level() != Streaming {
			t.Errorf("after another restart the level is %s", restarted.Level())
		}
	})
}

// Calls that were reserved and returned lower nothing.
func TestReturnedCallsLowerNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		a, b := newGovernor(s, 20, newClock()), newGovernor(s, 20, newClock())
		var open []Reservation
		for range 20 {
			r, err := a.Reserve(t.Context(), Finish, CardCreate)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, r)
		}
		for _, r := range open {
			if err := r.Return(t.Context(), CardCreate); err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range []*Governor{a, b, newGovernor(s, 20, newClock())} {
			if err := g.Refresh(t.Context()); err != nil || g.Level() != Streaming {
				t.Errorf("with all calls returned the level is %s, %v", g.Level(), err)
			}
			if _, err := g.Reserve(t.Context(), Frame, CardStream); err != nil {
				t.Errorf("with all calls returned: %v", err)
			}
		}
	})
}

// A changed quota begins again with its own levels.
func TestChangedQuota(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		c := newClock()
		before := newGovernor(s, 10, c)
		for range 10 {
			if _, err := before.Reserve(t.Context(), Finish, GroupSend); err != nil {
				t.Fatal(err)
			}
		}
		after := newGovernor(s, 1000, c)
		if _, err := after.Reserve(t.Context(), Frame, CardStream); err != nil || after.Status() != (Status{Month: "2026-11", Calls: 11, Quota: 1000}) {
			t.Errorf("%v, %+v", err, after.Status())
		}
	})
}

// replicasModel is the truth that the property below compares with.
type replicasModel struct {
	store    Store
	quota    int64
	clock    *clock
	replicas []*Governor
	counted  int64 // calls of the month
	open     []openCall
}

type openCall struct {
	Reservation
	api   API
	month string
}

func (m *replicasModel) start() {
	m.replicas = append(m.replicas, newGovernor(m.store, m.quota, m.clock))
}

func (m *replicasModel) reserve(t *rapid.T) {
	g := m.replicas[rapid.IntRange(0, len(m.replicas)-1).Draw(t, "replica")]
	need := Need(rapid.IntRange(0, int(Finish)).Draw(t, "need"))
	apis := []API{rapid.SampledFrom([]API{CardStream, GroupSend}).Draw(t, "api")}
	if need == Card {
		apis = []API{CardCreate, CardStream}
	}
	r, err := g.Reserve(t.Context(), need, apis...)
	if IsRefused(err) {
		if need == Finish && m.counted < m.quota {
			t.Fatalf("refused a call of need Finish after %d of %d", m.counted, m.quota)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.counted += int64(len(apis))
	if m.counted > need.bound(m.quota) {
		t.Fatalf("%d of %d calls after need %d", m.counted, m.quota, need)
	}
	for _, api := range apis {
		m.open = append(m.open, openCall{r, api, g.Status().Month})
	}
}

func (m *replicasModel) giveBack(t *rapid.T) {
	if len(m.open) == 0 {
		return // this step changes nothing
	}
	i := rapid.IntRange(0, len(m.open)-1).Draw(t, "call")
	one := m.open[i]
	m.open = append(m.open[:i], m.open[i+1:]...)
	if err := one.Return(t.Context(), one.api); err != nil {
		t.Fatal(err)
	}
	if one.month == sessions.MonthOf(m.clock.now().In(shanghai).Format(dayForm)) {
		m.counted--
	}
}

// kill ends a replica; its open reservations stay counted.
func (m *replicasModel) kill(t *rapid.T) {
	i := rapid.IntRange(0, len(m.replicas)-1).Draw(t, "replica")
	m.replicas[i] = newGovernor(m.store, m.quota, m.clock)
}

func (m *replicasModel) nextMonth(*rapid.T) {
	m.clock.set(m.clock.now().AddDate(0, 1, 0))
	m.counted = 0
}

func (m *replicasModel) check(t *rapid.T) {
	for _, g := range m.replicas {
		if err := g.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := g.Status()
		if s.Calls != m.counted || s.Calls > m.quota {
			t.Fatalf("counted %d, want %d of at most %d", s.Calls, m.counted, m.quota)
		}
		if s.Level != LevelOf(s.Calls, m.quota) {
			t.Fatalf("the level is %s after %d of %d", s.Level, s.Calls, m.quota)
		}
	}
}

func (m *replicasModel) run(t *rapid.T) {
	for range 2 {
		m.start()
	}
	t.Repeat(map[string]func(*rapid.T){
		"": m.check, "reserve": m.reserve, "reserve more": m.reserve, "reserve most": m.reserve,
		"return": m.giveBack, "kill": m.kill, "next month": m.nextMonth,
	})
}

// Replicas never exceed the month's calls, whatever they ask, return and lose. Their levels follow from the count.
func TestMonthIsNeverExceeded(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			m := &replicasModel{store: NewMemory(), quota: rapid.Int64Range(1, 40).Draw(r, "quota"), clock: newClock()}
			m.run(r)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, n := openPG(t), 0
		rapid.Check(t, func(r *rapid.T) {
			c := newClock()
			c.set(c.now().AddDate(10*n, 0, 0)) // months of its own in the same database
			n++
			m := &replicasModel{store: s, quota: rapid.Int64Range(1, 40).Draw(r, "quota"), clock: c}
			m.run(r)
		})
	})
}

// Two replicas that call at once get together what the month has, and each call is counted under its API.
func TestReplicasAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		const quota = 60
		c := newClock()
		var granted, returned atomic.Int64
		var all sync.WaitGroup
		for range 2 {
			g := newGovernor(s, quota, c)
			for i := range 8 {
				all.Go(func() {
					for n := 0; ; n++ {
						need, apis := Need((i+n)%4), []API{CardStream}
						if need == Card {
							apis = []API{CardCreate, CardStream}
						}
						r, err := g.Reserve(t.Context(), need, apis...)
						if IsRefused(err) {
							if need == Finish {
								return
							}
							continue
						}
						if err != nil {
							t.Error(err)
							return
						}
						granted.Add(int64(len(apis)))
						if n%5 == 0 {
							if err := r.Return(t.Context(), CardStream); err != nil {
								t.Error(err)
								return
							}
							returned.Add(1)
						}
					}
				})
			}
		}
		all.Wait()
		m, err := s.CallMonth(t.Context(), "2026-11")
		if err != nil || m.Calls > quota || m.Calls != granted.Load()-returned.Load() {
			t.Errorf("counted %d of %d (%v): granted %d, returned %d", m.Calls, quota, err, granted.Load(), returned.Load())
		}
	})
}
