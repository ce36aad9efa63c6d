package bot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// requested has compactions that an administrator asked for. Sessions are in the order of the list.
type requested struct {
	mu   sync.Mutex
	list []sessions.CompactionRequest
}

func (r *requested) CompactionRequests(context.Context, sessions.ReplicaID, int) ([]sessions.CompactionRequest, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list), nil
}

func (r *requested) change(key sessions.Key, f func(i int)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.list, func(c sessions.CompactionRequest) bool { return c.Key == key })
	if i < 0 {
		return sessions.ErrNotFound
	}
	f(i)
	return nil
}

func (r *requested) StartRequest(_ context.Context, l sessions.Lease) (n int, err error) {
	err = r.change(l.Key, func(i int) { r.list[i].Attempts++; n = r.list[i].Attempts })
	return n, err
}

func (r *requested) ReturnRequest(_ context.Context, l sessions.Lease, _ int) error {
	return r.change(l.Key, func(i int) { r.list[i].Attempts-- })
}

func (r *requested) EndRequest(_ context.Context, l sessions.Lease, _ int) error {
	return r.change(l.Key, func(i int) { r.list = slices.Delete(r.list, i, i+1) })
}

func (r *requested) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// A requested compaction stays until an attempt has ended: errors before the attempt and a lost lease keep it.
func TestRequestedCompactionIsKept(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"the storage fails": errors.New("refused"), "the lease is lost": sessions.ErrLeaseLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &requested{}
				w := start(t, setup{config: func(c *Config) { c.Requests = r }})
				w.fill(3000)
				w.store.fail(func(op string) error {
					if op == "upkeep" {
						return fault
					}
					return nil
				})
				r.mu.Lock()
				r.list = []sessions.CompactionRequest{{Key: group}}
				r.mu.Unlock()
				after(15 * time.Second) // more attempts than a request that kills its process has
				want(t, "waiting requests", r.waiting(), 1)
				want(t, "compactions", w.compactions(), 0)
				w.store.fail(nil)
				after(15 * time.Second)
				if name == "the storage fails" {
					want(t, "waiting requests", r.waiting(), 0)
					want(t, "compactions", w.compactions(), 1)
				}
			})
		})
	}
}

// A slow compaction does not delay that of another session.
func TestRequestedCompactionsRunTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var began int
		var mu sync.Mutex
		m := &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
			mu.Lock()
			began++
			mu.Unlock()
			<-release
			return text(goodSummary), nil
		}}
		r := &requested{}
		w := start(t, setup{model: m, config: func(c *Config) { c.Requests = r }})
		w.fill(3000)
		other := said("o1", "bob", prose(1, 1500))
		other.ConversationID = "c2"
		for i := range 6 {
			other.ID = sessions.MessageID(string(rune('a'+i)) + "-other")
			w.post(other)
			synctest.Wait()
		}
		r.mu.Lock()
		r.list = []sessions.CompactionRequest{{Key: group}, {Key: sessions.NewKey("robot", "c2", "")}}
		r.mu.Unlock()
		after(3 * time.Second)
		mu.Lock()
		want(t, "summaries that are written", began, 2)
		mu.Unlock()
		close(release)
		synctest.Wait()
		want(t, "waiting requests", r.waiting(), 0)
	})
}

// A request whose process died three times is a failed compaction with the reason, and delays no automatic one.
func TestRequestedCompactionOfDeadProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &requested{}
		w := start(t, setup{config: func(c *Config) { c.Requests = r }})
		w.fill(3000)
		r.mu.Lock()
		r.list = []sessions.CompactionRequest{{Key: group, Focus: "端口", Attempts: 3}}
		r.mu.Unlock()
		after(3 * time.Second)
		want(t, "waiting requests", r.waiting(), 0)
		want(t, "compactions", w.compactions(), 0)
		s, err := w.store.Session(t.Context(), group)
		if err != nil || s.CompactError != "process died: none of 3 attempts ended" || s.CompactFailures != 0 || !s.CompactRetryAt.IsZero() {
			t.Errorf("the session has the reason %q (%v), %d failures, a retry at %v", s.CompactError, err, s.CompactFailures, s.CompactRetryAt)
		}
		if last := attempts(t, w.store)[0]; last.Outcome != "failed" || last.Trigger != "manual" || last.Focus != "端口" || last.Error != s.CompactError {
			t.Errorf("the log has %+v", last)
		}
	})
}
