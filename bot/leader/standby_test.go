package leader_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// switchboard is DingTalk's side of several replicas' connections. It keeps the fewest and the most that there were at once.
type switchboard struct {
	mu           sync.Mutex
	live         []string
	refused      map[string]bool // replicas that can't connect
	accept       map[string]chat.Accept
	fewest, most int
}

func newSwitchboard() *switchboard {
	return &switchboard{refused: map[string]bool{}, accept: map[string]chat.Accept{}}
}

func (x *switchboard) set(name string, up bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.live = slices.DeleteFunc(x.live, func(s string) bool { return s == name })
	if up {
		x.live = append(x.live, name)
		slices.Sort(x.live)
	}
	x.fewest, x.most = min(x.fewest, len(x.live)), max(x.most, len(x.live))
}

func (x *switchboard) has(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.live, name)
}

// connected lists the connected replicas, and restarts the count.
func (x *switchboard) connected() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fewest, x.most = len(x.live), len(x.live)
	return strings.Join(x.live, " ")
}

// between is the fewest and the most connections at once since connected was asked.
func (x *switchboard) between() [2]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return [2]int{x.fewest, x.most}
}

func (x *switchboard) refuse(name string, so bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused[name] = so
}

// cable is one replica's transport to an switchboard. It takes a tenth of a second to connect.
type cable struct {
	x    *switchboard
	name string
}

func (l cable) Run(ctx context.Context, accept chat.Accept) error {
	l.x.mu.Lock()
	l.x.accept[l.name] = accept
	l.x.mu.Unlock()
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

func (l cable) Send(context.Context, sessions.Outgoing) (chat.Sent, error) {
	return chat.Sent{Via: "webhook", Part: 1}, nil
}

func (l cable) Ready() bool { return l.x.has(l.name) }

// oneOf starts a replica of several of which one is connected.
func oneOf(t *testing.T, s *bottest.Shelf, x *switchboard, name string) *bottest.World {
	t.Helper()
	idle := &bottest.Wire{Running: make(chan struct{})}
	return bottest.Start(t, bottest.Setup{Shelf: s, Name: sessions.ReplicaID(name), Wire: idle, Config: func(c *bot.Config) {
		close(idle.Running) // no caller waits for this one
		c.Transport, c.OneStream = cable{x, name}, true
	}})
}

// Each replica with a connection of its own reports whether it is connected: the console shows it.
func TestEachReplicaReportsItsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := bottest.NewShelf(), newSwitchboard()
		var kept *bottest.Store
		idle := &bottest.Wire{Running: make(chan struct{})}
		bottest.Start(t, bottest.Setup{Shelf: s, Name: "a", Wire: idle, Config: func(c *bot.Config) {
			close(idle.Running)
			kept = c.Stores.Inbox.(*bottest.Store)
			c.Transport, c.Elector = cable{x, "a"}, kept
		}})
		connected := func() bool {
			l, err := kept.Mem.Replicas.Leader(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return l.Connected
		}
		bottest.Want(t, "connected at the start", connected(), false)
		bottest.After(5 * time.Second)
		bottest.Want(t, "connected", connected(), true)
		x.refuse("a", true)
		bottest.After(5 * time.Second)
		bottest.Want(t, "connected without a connection", connected(), false)
	})
}

// One of several replicas is connected, the oldest; the others are ready all the same.
func TestOneStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := bottest.NewShelf(), newSwitchboard()
		b := oneOf(t, s, x, "b")
		bottest.After(5 * time.Second)
		a := oneOf(t, s, x, "a")
		bottest.After(5 * time.Second)
		bottest.Want(t, "connected", x.connected(), "b")
		bottest.Want(t, "ready", []error{a.Bot.Ready(), b.Bot.Ready()}, []error{nil, nil})
		bottest.After(time.Minute)
		bottest.Want(t, "connections in a minute of calm", x.between(), [2]int{1, 1})
		bottest.Want(t, "figures", []float64{bottest.Series(t, a, "ebb_stream_leader"), bottest.Series(t, b, "ebb_stream_leader")}, []float64{0, 1})
	})
}

// At a clean stop the next one is connected before the leader leaves, and no turn waits for longer than that takes.
func TestStreamIsHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := bottest.NewShelf(), newSwitchboard()
		a := oneOf(t, s, x, "a")
		bottest.After(time.Second)
		b := oneOf(t, s, x, "b")
		bottest.After(5 * time.Second)
		bottest.Want(t, "connected", x.connected(), "a")
		began := time.Now()
		a.Stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
		bottest.Want(t, "connections meanwhile", x.between(), [2]int{1, 2})
		bottest.Want(t, "connected", x.connected(), "b")
		bottest.Want(t, "ready", b.Bot.Ready(), nil)

		// The last replica has no successor to wait for.
		began = time.Now()
		b.Stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop of the last one took %v", took)
		}
	})
}

// One that leads and is not heard of any more is followed within the time to live and a second.
func TestStreamIsTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := bottest.NewShelf(), newSwitchboard()
		a := oneOf(t, s, x, "a")
		bottest.After(time.Second)
		oneOf(t, s, x, "b")
		bottest.After(5 * time.Second)
		a.Store.Fail(func(string) error { return errors.New("away") })
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
		bottest.After(2 * time.Second)
		x.connected()
		a.Store.Fail(nil)
		bottest.After(30 * time.Second)
		bottest.Want(t, "connections since", x.between(), [2]int{1, 2})
		if now := x.connected(); now != "a" && now != "b" {
			t.Errorf("connected are %q, want one", now)
		}
	})
}

// A leader that can't connect does not keep the others from a connection.
func TestStreamOfALeaderWithoutConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := bottest.NewShelf(), newSwitchboard()
		x.refuse("a", true)
		a := oneOf(t, s, x, "a")
		b := oneOf(t, s, x, "b")
		bottest.After(bottest.TakeOverAfter / 2)
		if a.Bot.Ready() == nil {
			t.Error("one that leads without a connection is ready")
		}
		bottest.After(bottest.TakeOverAfter)
		bottest.Want(t, "connected", x.connected(), "b")
		bottest.Want(t, "ready", []error{a.Bot.Ready(), b.Bot.Ready()}, []error{nil, nil})
		x.refuse("a", false)
		bottest.After(bottest.TakeOverAfter)
		bottest.Want(t, "connected", x.connected(), "b")
		bottest.Want(t, "connections meanwhile", x.between(), [2]int{1, 1})
	})
}

// A lost notice of the stop is sent again. No replica waits for a leader that takes nothing in any more, however long
// its turns take.
func TestStreamIsHandedOverAfterALostWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lost  int
		there int // the fewest connections at once
	}{{"once", 1, 1}, {"for longer than the hand-over", 12, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, x := bottest.NewShelf(), newSwitchboard()
				a := oneOf(t, s, x, "a")
				a.Model.Chat = func(ctx context.Context, _ llm.Request) (llm.Response, error) {
					select {
					case <-time.After(15 * time.Second):
					case <-ctx.Done():
					}
					return bottest.Text("late"), nil
				}
				bottest.After(time.Second)
				oneOf(t, s, x, "b")
				bottest.After(2 * time.Second)
				bottest.Want(t, "connected", x.connected(), "a")
				if err := x.accept["a"](t.Context(), bottest.Said("m0", "alice", "slow")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				a.Store.Fail(bottest.Times(c.lost, "mark", bottest.ErrAway))
				a.Begin()
				bottest.After(7 * time.Second)
				bottest.Want(t, "fewest connections", x.between()[0], c.there)
				bottest.Want(t, "connected", x.connected(), "b")
				select {
				case err := <-a.Ended:
					t.Errorf("a did not wait for its turn: %v", err)
					a.Ended <- err
				default:
				}
			})
		})
	}
}

// One that leads and alone is cut off from the storage for long leaves the connection to the one that followed it.
func TestStreamOfALeaderCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := bottest.NewShelf(), newSwitchboard()
		a := oneOf(t, s, x, "a")
		bottest.After(time.Second)
		b := oneOf(t, s, x, "b")
		bottest.After(2 * time.Second)
		a.Store.Fail(func(string) error { return bottest.ErrAway })
		bottest.After(bottest.LeaseTTL + time.Second)
		bottest.Want(t, "connected", x.connected(), "a b")
		bottest.After(bottest.TakeOverAfter)
		bottest.Want(t, "connected", x.connected(), "b")
		bottest.After(time.Hour)
		bottest.Want(t, "connections in an hour", x.between(), [2]int{1, 1})
		a.Store.Fail(nil)
		bottest.After(time.Minute)
		bottest.Want(t, "connected", x.connected(), "b")
		bottest.Want(t, "connections after it came back", x.between(), [2]int{1, 1})

		// After an outage of the storage for all replicas there is a connection again as soon as it answers.
		away := func(string) error { return bottest.ErrAway }
		a.Store.Fail(away)
		b.Store.Fail(away)
		bottest.After(time.Minute)
		bottest.Want(t, "connected", x.connected(), "")
		a.Store.Fail(nil)
		b.Store.Fail(nil)
		bottest.After(2 * time.Second)
		if x.connected() == "" {
			t.Error("no replica is connected 2 s after the storage was back")
		}
		bottest.After(20 * time.Second)
		bottest.Want(t, "connected", len(x.connected()), 1)
	})
}

// A leader that can't connect does not keep asking the storage for that.
func TestLeaderWithoutConnectionAsksSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x := bottest.NewShelf(), newSwitchboard()
		x.refuse("a", true)
		x.refuse("b", true)
		a, b := oneOf(t, s, x, "a"), oneOf(t, s, x, "b")
		bottest.After(bottest.TakeOverAfter + bottest.HandOverTime + time.Second) // both try
		asked := a.Store.Called("leader") + b.Store.Called("leader")
		bottest.After(time.Minute)
		asked = a.Store.Called("leader") + b.Store.Called("leader") - asked
		if most := 2 * int(time.Minute/bottest.LeaderChecked+2); asked > most {
			t.Errorf("asked %d times in a minute, want %d at most", asked, most)
		}
	})
}
