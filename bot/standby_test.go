package bot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// exchange is DingTalk's side of several replicas' connections. It keeps the fewest and the most that there were at once.
type exchange struct {
	mu           sync.Mutex
	live         []string
	refused      map[string]bool // who can't connect
	fewest, most int
}

func newExchange() *exchange { return &exchange{refused: map[string]bool{}} }

func (x *exchange) set(name string, up bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.live = slices.DeleteFunc(x.live, func(s string) bool { return s == name })
	if up {
		x.live = append(x.live, name)
		slices.Sort(x.live)
	}
	x.fewest, x.most = min(x.fewest, len(x.live)), max(x.most, len(x.live))
}

func (x *exchange) has(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.live, name)
}

// connected lists who is connected now, and counts anew.
func (x *exchange) connected() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fewest, x.most = len(x.live), len(x.live)
	return strings.Join(x.live, " ")
}

// between is the fewest and the most connections at once since connected was asked.
func (x *exchange) between() [2]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return [2]int{x.fewest, x.most}
}

func (x *exchange) refuse(name string, so bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused[name] = so
}

// cable is one replica's transport to an exchange. It takes a tenth of a second to connect.
type cable struct {
	x    *exchange
	name string
}

func (l cable) Run(ctx context.Context, _ Accept) error {
	defer l.x.set(l.name, false)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
			l.x.mu.Lock()
			refused := l.x.refused[l.name]
			l.x.mu.Unlock()
			if l.x.has(l.name) == refused {
				l.x.set(l.name, !refused)
			}
		}
	}
	return nil
}

func (l cable) Send(context.Context, sessions.Outgoing) (Sent, error) {
	return Sent{Via: "webhook", Part: 1}, nil
}

func (l cable) Ready() bool { return l.x.has(l.name) }

func (s *store) Mark(ctx context.Context, o sessions.ReplicaID, st sessions.Standing) error {
	_, err := do(s, "mark", func() (none, error) { return none{}, s.mem.Mark(ctx, o, st) })
	return err
}

func (s *store) Leader(ctx context.Context) (sessions.Leader, error) {
	return do(s, "leader", func() (sessions.Leader, error) { return s.mem.Leader(ctx) })
}

// oneOf starts a replica of several of which one is connected.
func oneOf(t *testing.T, s *shelf, x *exchange, name string) *world {
	t.Helper()
	idle := &wire{running: make(chan struct{})}
	return start(t, setup{shelf: s, name: sessions.ReplicaID(name), wire: idle, config: func(c *Config) {
		close(idle.running) // nobody waits for this one
		c.Transport, c.OneStream, c.Elector = cable{x, name}, true, c.Store.(*store)
	}})
}

// Of several replicas one is connected, the oldest; the others are ready all the same.
func TestOneStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := newShelf(), newExchange()
		b := oneOf(t, s, x, "b")
		after(5 * time.Second)
		a := oneOf(t, s, x, "a")
		after(5 * time.Second)
		want(t, "connected", x.connected(), "b")
		want(t, "ready", []error{a.bot.Ready(), b.bot.Ready()}, []error{nil, nil})
		after(time.Minute)
		want(t, "connections in a minute of calm", x.between(), [2]int{1, 1})
		want(t, "figures", []float64{value(t, a, "ebb_stream_leader"), value(t, b, "ebb_stream_leader")}, []float64{0, 1})
	})
}

// At a clean stop the next one is connected before the one that leads leaves, and nobody waits for longer than that takes.
func TestStreamIsHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := newShelf(), newExchange()
		a := oneOf(t, s, x, "a")
		after(time.Second)
		b := oneOf(t, s, x, "b")
		after(5 * time.Second)
		want(t, "connected", x.connected(), "a")
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
		want(t, "connections meanwhile", x.between(), [2]int{1, 2})
		want(t, "connected", x.connected(), "b")
		want(t, "ready", b.bot.Ready(), nil)

		// The last one has nobody to wait for.
		began = time.Now()
		b.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop of the last one took %v", took)
		}
	})
}

// One that leads and is not heard of any more is followed within the time to live and a second.
func TestStreamIsTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := newShelf(), newExchange()
		a := oneOf(t, s, x, "a")
		after(time.Second)
		oneOf(t, s, x, "b")
		after(5 * time.Second)
		a.store.fail(func(string) error { return errors.New("away") })
		x.refuse("a", true)
		silent := time.Now()
		for x.connected() != "b" && time.Since(silent) < time.Minute {
			<-time.After(10 * time.Millisecond)
		}
		if took := time.Since(silent); took > 6*time.Second {
			t.Errorf("b was connected %v after a fell silent", took)
		}

		// It comes back: in the end there is one connection again, and there always was one.
		x.refuse("a", false)
		after(2 * time.Second)
		x.connected()
		a.store.fail(nil)
		after(30 * time.Second)
		want(t, "connections since", x.between(), [2]int{1, 2})
		if now := x.connected(); now != "a" && now != "b" {
			t.Errorf("connected are %q, want one", now)
		}
	})
}

// One that leads and can't connect keeps nobody from being connected.
func TestStreamOfALeaderWithoutConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := newShelf(), newExchange()
		x.refuse("a", true)
		a := oneOf(t, s, x, "a")
		b := oneOf(t, s, x, "b")
		after(helpAfter / 2)
		if a.bot.Ready() == nil {
			t.Error("one that leads without a connection is ready")
		}
		after(helpAfter)
		want(t, "connected", x.connected(), "b")
		want(t, "ready", []error{a.bot.Ready(), b.bot.Ready()}, []error{nil, nil})
		x.refuse("a", false)
		after(helpAfter)
		want(t, "connected", x.connected(), "b")
		want(t, "connections meanwhile", x.between(), [2]int{1, 1})
	})
}
