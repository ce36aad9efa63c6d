package calls

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"ebb/sql"
	stored "ebb/sql/calls"
	"ebb/sql/sqltest"
)

var (
	_ Store = (*Memory)(nil)
	_ Store = (*stored.Store)(nil)
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("ebb/sql/localpg.(*Server).supervise"), goleak.Cleanup(sqltest.Exit))
}

func openPG(t *testing.T) *stored.Store {
	t.Helper()
	s, err := sql.Open(t.Context(), sql.Options{URL: sqltest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.Calls
}

// onBoth runs a test over an empty store in memory and one in PostgreSQL.
func onBoth(t *testing.T, test func(*testing.T, Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { t.Parallel(); test(t, NewMemory()) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, openPG(t)) })
}

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// newGovernor is the governor of one replica.
func newGovernor(s Store, quota int64, c *clock) *Governor {
	g := New(Options{Store: s, Quota: quota})
	g.now = c.now
	return g
}

// logged returns a context whose log lines are counted.
func logged(ctx context.Context) (context.Context, func(event string) int) {
	var mu sync.Mutex
	var b bytes.Buffer
	write := writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	})
	return zerolog.New(write).WithContext(ctx), func(event string) int {
		mu.Lock()
		defer mu.Unlock()
		return strings.Count(b.String(), event)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
