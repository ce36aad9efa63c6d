package upkeep_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
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
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Requests = r }})
				w.Fill(3000)
				w.Store.Fail(func(op string) error {
					if op == "upkeep" {
						return fault
					}
					return nil
				})
				r.mu.Lock()
				r.list = []sessions.CompactionRequest{{Key: bottest.Group}}
				r.mu.Unlock()
				bottest.After(15 * time.Second) // more attempts than a request that kills its process has
				bottest.Want(t, "waiting requests", r.waiting(), 1)
				bottest.Want(t, "compactions", w.Compactions(), 0)
				w.Store.Fail(nil)
				bottest.After(15 * time.Second)
				if name == "the storage fails" {
					bottest.Want(t, "waiting requests", r.waiting(), 0)
					bottest.Want(t, "compactions", w.Compactions(), 1)
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
		m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			mu.Lock()
			began++
			mu.Unlock()
			<-release
			return bottest.Text(bottest.GoodSummary), nil
		}}
		r := &requested{}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.Requests = r }})
		w.Fill(3000)
		other := bottest.Said("o1", "bob", bottest.Prose(1, 1500))
		other.ConversationID = "c2"
		for i := range 6 {
			other.ID = sessions.MessageID(string(rune('a'+i)) + "-other")
			w.Post(other)
			synctest.Wait()
		}
		r.mu.Lock()
		r.list = []sessions.CompactionRequest{{Key: bottest.Group}, {Key: sessions.NewKey("robot", "c2", "")}}
		r.mu.Unlock()
		bottest.After(3 * time.Second)
		mu.Lock()
		bottest.Want(t, "summaries that are written", began, 2)
		mu.Unlock()
		close(release)
		synctest.Wait()
		bottest.Want(t, "waiting requests", r.waiting(), 0)
	})
}

// A request whose process died three times is a failed compaction with the reason, and delays no automatic one.
func TestRequestedCompactionOfDeadProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &requested{}
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Requests = r }})
		w.Fill(3000)
		r.mu.Lock()
		r.list = []sessions.CompactionRequest{{Key: bottest.Group, Focus: "端口", Attempts: 3}}
		r.mu.Unlock()
		bottest.After(3 * time.Second)
		bottest.Want(t, "waiting requests", r.waiting(), 0)
		bottest.Want(t, "compactions", w.Compactions(), 0)
		s, err := w.Store.Session(t.Context(), bottest.Group)
		if err != nil || s.CompactError != "process died: none of 3 attempts ended" || s.CompactFailures != 0 || !s.CompactRetryAt.IsZero() {
			t.Errorf("the session has the reason %q (%v), %d failures, a retry at %v", s.CompactError, err, s.CompactFailures, s.CompactRetryAt)
		}
		if last := bottest.Attempts(t, w.Store)[0]; last.Outcome != "failed" || last.Trigger != "manual" || last.Focus != "端口" || last.Error != s.CompactError {
			t.Errorf("the log has %+v", last)
		}
	})
}
