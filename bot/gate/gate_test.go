package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// modelFunc is a model of one function.
// A noisy group whose members have sessions of their own takes its turns among the others.
func TestNoisyGroupDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := NewFairSemaphore(2, nil)
		var order []string
		var mu sync.Mutex
		call := func(key sessions.Key, name string) {
			leave, err := f.Enter(t.Context(), WaiterOf(key))
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			<-time.After(time.Second)
		}
		var all sync.WaitGroup
		defer all.Wait()
		for i := range 200 {
			all.Go(func() { call(sessions.NewKey("robot", "noisy", sessions.UserID(fmt.Sprint("u", i%50))), "noisy") })
		}
		synctest.Wait()
		all.Go(func() { call(sessions.NewKey("robot", "quiet", ""), "quiet") })
		<-time.After(2500 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(order, "quiet") {
			t.Errorf("after two rounds of the model: %v", order)
		}
	})
}

// Upkeep has a quarter of the places and waits for more behind people.
func TestUpkeepHasAQuarterOfTheCalls(t *testing.T) {
	t.Parallel()
	for most, quarter := range map[int]int{1: 1, 2: 1, 7: 1, 8: 2, 32: 8} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var low, high atomic.Int64
			g := NewGate(llmtest.Func(func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if r.Model == "upkeep" {
					low.Add(1)
				} else {
					high.Add(1)
				}
				<-ctx.Done()
				return llm.Response{}, context.Cause(ctx)
			}), most)
			var all sync.WaitGroup
			ask := func(ctx context.Context, name string) {
				all.Go(func() {
					if _, err := g.Generate(ctx, llm.Request{Model: name, Tools: []llm.ToolSpec{{}}}); !errors.Is(err, context.Canceled) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			for range 3 * most {
				ask(ctx, "upkeep")
			}
			synctest.Wait()
			for range 3 * most {
				ask(llm.WithWaiter(ctx, sessions.NewKey("robot", "c1", "")), "people")
			}
			synctest.Wait()
			want(t, fmt.Sprint("upkeep of ", most), low.Load(), int64(quarter))
			want(t, fmt.Sprint("people of ", most), high.Load(), int64(most-quarter))
			want(t, "waiting", g.Waiting(), 6*most-most)
			stop()
			all.Wait()
			want(t, "places free at the end", fmt.Sprint(g.calls.free, g.upkeep.free), fmt.Sprint(most, quarter))
		})
	}
}

// The usage of a request that goes on after its call is counted, for the session of the call.
func TestLateUsageIsCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	g := NewGate(llmtest.Func(func(_ context.Context, r llm.Request) (llm.Response, error) {
		r.Late(llm.Part{Model: "main", Usage: sessions.Usage{Prompt: 30, Completion: 1}, Cost: 0.5})
		return llm.Response{Text: "好", Model: "spare"}, nil
	}), 1)
	var got []string
	g.Report(NewMetrics(registry, g), func(context.Context, llm.Request, []llm.Part) {}, func(ctx context.Context, p llm.Part) {
		got = append(got, fmt.Sprint(llm.SessionOf(ctx), p.Model, p.Usage.Prompt))
	})
	if _, err := g.Generate(llm.WithWaiter(t.Context(), "robot/s"), llm.Request{}); err != nil || fmt.Sprint(got) != "[robot/smain30]" {
		t.Errorf("counted %q, %v", got, err)
	}
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == "ebb_model_tokens_total" || f.GetName() == "ebb_model_cost_total" {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	if sum != 31.5 {
		t.Errorf("metrics count %g tokens and cost", sum)
	}
}
