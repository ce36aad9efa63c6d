package bot

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/memory"
)

// attic is a memory that needs tidying up.
type attic struct {
	mu      sync.Mutex
	backlog int
	expired int
	old     []memory.Memory
	kept    []memory.Draft
	asked   int // for overfull scopes
}

func (a *attic) IndexBacklog(_ context.Context, limit int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(a.backlog, limit)
	a.backlog -= n
	return n, nil
}

func (a *attic) Expire(context.Context) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.expired
	a.expired = 0
	return n, nil
}

func (a *attic) Overfull(_ context.Context, limit int) ([]memory.Crowded, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if len(a.old) <= limit {
		return nil, nil
	}
	return []memory.Crowded{{Scope: memory.ScopeGroup, ScopeID: "g", Held: len(a.old)}}, nil
}

func (a *attic) Oldest(_ context.Context, _ memory.Crowded, limit int) ([]memory.Memory, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.old[:min(limit, len(a.old))], nil
}

func (a *attic) Consolidate(_ context.Context, old []memory.Memory, drafts []memory.Draft) (memory.Receipt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.old, a.kept = a.old[len(old):], append(a.kept, drafts...)
	return memory.Receipt{Saved: []int64{100}}, nil
}

// The background indexes what has no index, deletes what expired, and has the oldest facts of a full scope told in fewer.
func TestChores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &attic{backlog: 1200, expired: 3}
		for i := range 12 {
			a.old = append(a.old, memory.Memory{ID: int64(i + 1), Scope: memory.ScopeGroup, ScopeID: "g", Kind: memory.KindFact, Content: fmt.Sprintf("the heron cluster has node %d", i)})
		}
		lossy := true
		m := &script{flush: func(context.Context, Request) (Response, error) {
			if lossy {
				return saveCall("The heron cluster has nodes."), nil
			}
			return saveCall("The heron cluster has the nodes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 11."), nil
		}}
		w := start(t, setup{model: m, config: func(c *Config) { c.Keeper, c.Remember.MaxPerScope = a, 10 }})
		after(settleEvery)
		want(t, "without an index", a.backlog, 0)
		want(t, "expired", a.expired, 0)
		want(t, "facts after an answer that lost some", len(a.old), 12)
		lossy = false
		after(time.Hour)
		want(t, "calls while the scope rests", len(m.requests("flush")), 1)
		after(crowdRest)
		want(t, "facts and what tells them", fmt.Sprint(len(a.old), len(a.kept)), "0 1")
		want(t, "messages to the group", len(w.wire.texts()), 0)
	})
}
