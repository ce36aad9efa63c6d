package calls

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
)

// No second has more than 20 calls of one API, callers are admitted in order, and other APIs do not wait.
func TestRateOfAnAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Store: NewMemory()})
		began := make(chan int, 65)
		var at []time.Time
		var order []int
		for i := range 65 {
			go func() {
				if err := g.Wait(t.Context(), CardStream); err != nil {
					t.Error(err)
				}
				began <- i
			}()
			synctest.Wait() // the caller is admitted or waits in its place
		}
		first := time.Now()
		if err := g.Wait(t.Context(), GroupSend); err != nil || !time.Now().Equal(first) {
			t.Errorf("another API waited %s, %v", time.Since(first), err)
		}
		for range 65 {
			order = append(order, <-began)
			at = append(at, time.Now())
		}
		if !slices.IsSorted(order) {
			t.Errorf("admitted in the order %v", order)
		}
		for i := 20; i < len(at); i++ {
			if at[i].Sub(at[i-20]) <= time.Second {
				t.Errorf("call %d began %s after the 20th before it", i, at[i].Sub(at[i-20]))
			}
		}
		if took := time.Since(first); took > 4*time.Second {
			t.Errorf("65 calls took %s", took)
		}
		if made := g.Made(); made[CardStream] != 65 || made[GroupSend] != 1 {
			t.Errorf("made %v", made)
		}
	})
}

// After a refusal the waiting callers of that API pause, also those that were about to begin.
func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Store: NewMemory(), PerSecond: 1})
		begin := time.Now()
		if err := g.Wait(t.Context(), CardStream); err != nil {
			t.Fatal(err)
		}
		waited := make(chan time.Duration)
		go func() {
			if err := g.Wait(t.Context(), CardStream); err != nil {
				t.Error(err)
			}
			waited <- time.Since(begin)
		}()
		synctest.Wait()
		<-time.After(time.Second)
		g.Pause(CardStream, 2*time.Second)
		if d := <-waited; d != 3*time.Second {
			t.Errorf("waited %s", d)
		}
		if d := g.Delay(CardStream); d != window {
			t.Errorf("right after a call the next one is due in %s", d)
		}
		g.Pause(CardStream, time.Hour)
		if d := g.Delay(CardStream); d != time.Hour {
			t.Errorf("in a pause the next call is due in %s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Wait(ctx, CardStream); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited past its deadline: %v", err)
		}
	})
}

// several is a store of several running replicas.
type several struct {
	*Memory
	n atomic.Int64
}

func (s *several) Replicas(context.Context) (int, error) { return int(s.n.Load()), nil }

func severalOf(n int64) *several {
	s := &several{Memory: NewMemory()}
	s.n.Store(n)
	return s
}

// Replicas share one rate: together they begin at most 20 calls of one API in a second, and each makes its calls. A replica that is
// left alone has the whole rate again.
func TestReplicasShareTheRate(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 7, 20} {
		t.Run(fmt.Sprint(n, " replicas"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var mu sync.Mutex
				var at []time.Time
				var callers sync.WaitGroup
				for range n {
					g := New(Options{Store: severalOf(int64(n))})
					go g.Watch(ctx)
					synctest.Wait()
					for range 10 {
						callers.Go(func() {
							if err := g.Wait(ctx, CardStream); err != nil {
								t.Error(err)
							}
							mu.Lock()
							defer mu.Unlock()
							at = append(at, time.Now())
						})
					}
				}
				began := time.Now()
				callers.Wait()
				for i := 20; i < len(at); i++ {
					if at[i].Sub(at[i-20]) <= time.Second {
						t.Errorf("call %d began %s after the 20th before it", i, at[i].Sub(at[i-20]))
					}
				}
				if took := time.Since(began); len(at) != 10*n || took > time.Duration(n)*window {
					t.Errorf("%d calls took %s", len(at), took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := severalOf(3)
		g := New(Options{Store: s})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go g.Watch(ctx)
		synctest.Wait()
		s.n.Store(1)
		<-time.After(refreshEvery)
		synctest.Wait()
		began := time.Now()
		for range 20 {
			if err := g.Wait(ctx, CardStream); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 0 || g.Share() != 1 {
			t.Errorf("20 calls of the only replica took %s", took)
		}
		s.n.Store(40) // more than calls
		<-time.After(refreshEvery)
		synctest.Wait()
		began = time.Now()
		for range 10 {
			if err := g.Wait(ctx, CardStream); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 10*2*window-refreshEvery {
			t.Errorf("10 calls of one of 40 replicas took %s", took)
		}
	})
}
