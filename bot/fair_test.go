package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// lineBook is who waits, as a test keeps it in mind, and who was served since each of them was or came.
type lineBook struct {
	tickets []booked
	passed  map[string]map[string]bool // who waits -> who was served meanwhile
}

type booked struct {
	*ticket
	who waiter
}

// names are the two levels at which somebody takes turns.
func (w waiter) names() [2]string {
	return [2]string{string(w.conversation.id), string(w.conversation.id) + "/" + string(w.session)}
}

func (b *lineBook) waits(name string) bool {
	for _, t := range b.tickets {
		if t.who.names()[0] == name || t.who.names()[1] == name {
			return true
		}
	}
	return false
}

func (b *lineBook) joined(t booked) {
	for _, name := range t.who.names() {
		if !b.waits(name) {
			b.passed[name] = map[string]bool{}
		}
	}
	b.tickets = append(b.tickets, t)
}

// served notes whose turn it was, and complains of whoever was passed over by the same one twice.
func (b *lineBook) served(rt *rapid.T, tk *ticket) {
	at := -1
	for i, t := range b.tickets {
		if t.ticket == tk {
			at = i
		}
	}
	if at < 0 {
		rt.Fatal("a place was given to somebody who does not wait")
	}
	who := b.tickets[at].who
	for _, t := range b.tickets[:at] {
		if t.who == who {
			rt.Fatalf("%v was served out of order", who)
		}
	}
	b.tickets = append(b.tickets[:at:at], b.tickets[at+1:]...)
	for level, name := range who.names() {
		seen := map[string]bool{name: true}
		for _, t := range b.tickets {
			other := t.who.names()[level]
			if seen[other] || level == 1 && t.who.conversation != who.conversation {
				continue
			}
			if seen[other] = true; b.passed[other][name] {
				rt.Fatalf("%s was served twice while %s waited", name, other)
			}
			b.passed[other][name] = true
		}
		b.passed[name] = map[string]bool{}
	}
}

// Whatever comes, gives up and is served: nobody is passed over twice by the same conversation, nor by the same session
// of its own; nothing is left behind when all are gone.
func TestNobodyWaitsLongerThanARound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var r ring
		book := lineBook{passed: map[string]map[string]bool{}}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			switch do := rapid.IntRange(0, 9).Draw(rt, "do"); {
			case do < 5:
				c, s := rapid.IntRange(0, 3).Draw(rt, "conversation"), rapid.IntRange(0, 2).Draw(rt, "session")
				who := waiterOf(sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", c)), sessions.UserID(fmt.Sprint("s", s))))
				book.joined(booked{r.join(who), who})
			case do < 9:
				switch next := r.next(); {
				case next != nil:
					book.served(rt, next)
				case len(book.tickets) > 0:
					rt.Fatalf("%d wait and nobody is next", len(book.tickets))
				}
			case len(book.tickets) > 0:
				i := rapid.IntRange(0, len(book.tickets)-1).Draw(rt, "who gives up")
				if !book.tickets[i].quit() || book.tickets[i].quit() {
					rt.Fatal("a ticket is given up once")
				}
				book.tickets = append(book.tickets[:i:i], book.tickets[i+1:]...)
			}
			if r.size != len(book.tickets) {
				rt.Fatalf("size %d, %d wait", r.size, len(book.tickets))
			}
		}
		for next := r.next(); next != nil; next = r.next() {
			book.served(rt, next)
		}
		if len(book.tickets) > 0 || len(r.named) > 0 || r.line.Len() > 0 {
			rt.Fatalf("left behind: %d tickets, %d names, %d in the line", len(book.tickets), len(r.named), r.line.Len())
		}
	})
}

// Hundreds come at random, wait, give up, or hold a place for a while: never more than there are places, none idle while
// somebody waits, none lost.
func TestPlacesAreNeitherExceededNorLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		type visit struct{ comes, patience, stays, conversation int }
		places := rapid.IntRange(1, 4).Draw(rt, "places")
		visits := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) visit {
			n := rapid.IntRange(0, 20)
			return visit{n.Draw(rt, "comes"), n.Draw(rt, "patience"), n.Draw(rt, "stays"), n.Draw(rt, "conversation") % 4}
		}), 1, 40).Draw(rt, "visits")
		over := rapid.IntRange(0, 60).Draw(rt, "over")
		synctest.Test(t, func(t *testing.T) {
			end := make(chan struct{})
			f := newFair(places, end)
			var inside, given, quit atomic.Int64
			var all sync.WaitGroup
			for _, v := range visits {
				all.Go(func() {
					<-time.After(time.Duration(v.comes) * time.Second)
					ctx, stop := context.WithTimeout(t.Context(), time.Duration(v.patience)*time.Second)
					defer stop()
					leave, err := f.enter(ctx, waiterOf(sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint(v.conversation)), "")))
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrStop) {
							t.Errorf("gave up for %v", err)
						}
						quit.Add(1)
						return
					}
					given.Add(1)
					if n := inside.Add(1); n > int64(places) {
						t.Errorf("%d hold %d places", n, places)
					}
					<-time.After(time.Duration(v.stays) * time.Second)
					inside.Add(-1)
					leave()
				})
			}
			for second := range 100 {
				if second == over {
					close(end)
				}
				synctest.Wait()
				if f.waiting() > 0 && inside.Load() < int64(places) {
					t.Errorf("%d wait while %d of %d places are taken", f.waiting(), inside.Load(), places)
				}
				<-time.After(time.Second)
			}
			all.Wait()
			want(t, "places free at the end", f.free, places)
			want(t, "waiting at the end", f.waiting(), 0)
			want(t, "visits that ended", given.Load()+quit.Load(), int64(len(visits)))
		})
	})
}

// A noisy group whose members have sessions of their own takes its turns among the others.
func TestNoisyGroupDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFair(2, nil)
		var order []string
		var mu sync.Mutex
		call := func(key sessions.Key, name string) {
			leave, err := f.enter(t.Context(), waiterOf(key))
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
		after(2500 * time.Millisecond)
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
			g := newGated(&script{chat: func(ctx context.Context, r Request) (Response, error) {
				if r.Model == "upkeep" {
					low.Add(1)
				} else {
					high.Add(1)
				}
				return hang(ctx, r)
			}}, most)
			var all sync.WaitGroup
			ask := func(ctx context.Context, name string) {
				all.Go(func() {
					if _, err := g.Generate(ctx, Request{Model: name, Tools: []ToolSpec{{}}}); !errors.Is(err, context.Canceled) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			for range 3 * most {
				ask(ctx, "upkeep")
			}
			synctest.Wait()
			for range 3 * most {
				ask(asking(ctx, group), "people")
			}
			synctest.Wait()
			want(t, fmt.Sprint("upkeep of ", most), low.Load(), int64(quarter))
			want(t, fmt.Sprint("people of ", most), high.Load(), int64(most-quarter))
			want(t, "waiting", g.waiting(), 6*most-most)
			stop()
			all.Wait()
			want(t, "places free at the end", fmt.Sprint(g.calls.free, g.upkeep.free), fmt.Sprint(most, quarter))
		})
	}
}

// One place is enough for turns that compact before they go on, with the upkeep behind them.
func TestOneCallAtATimeIsEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inside atomic.Int64
		slow := func(answer Response) func(context.Context, Request) (Response, error) {
			return func(context.Context, Request) (Response, error) {
				if n := inside.Add(1); n > 1 {
					t.Errorf("%d calls at once", n)
				}
				defer inside.Add(-1)
				<-time.After(100 * time.Millisecond)
				return answer, nil
			}
		}
		model := &script{chat: slow(text("all right")), flush: slow(saveCall("a fact")), summary: slow(Response{Text: goodSummary, Finish: FinishStop, Model: "fake"})}
		w := start(t, setup{model: model, config: func(c *Config) {
			c.MaxConcurrent = 1
			c.Compaction = smallOf("offload") // which compacts before the answer
		}})
		for i := range 30 {
			for _, conversation := range []string{"c1", "c2", "c3"} {
				m := said(fmt.Sprint(conversation, "-", i), "alice", strings.Repeat("what comes next? ", 60))
				m.ConversationID = sessions.ConversationID(conversation)
				w.post(m)
			}
			after(20 * time.Second)
		}
		want(t, "replies", len(w.wire.sends()), 90)
		if len(model.requests("summary")) == 0 {
			t.Error("nothing was compacted")
		}
	})
}

// More turns than there is room for wait without a view of their session, and not at all when the bot stops: what they
// would have answered is answered by the next process.
func TestTurnsInHandAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		a := start(t, setup{name: "a", shelf: shelf, model: &script{chat: hang}, config: func(c *Config) { c.MaxConcurrent = 2 }})
		for i := range 50 {
			m := said(fmt.Sprint("m", i), "alice", "hello")
			m.ConversationID = sessions.ConversationID(fmt.Sprint("c", i))
			a.post(m)
		}
		synctest.Wait()
		want(t, "turns that began", a.store.called("begin"), 2*turnsPerCall)
		want(t, "calls of the model", len(a.model.requests("chat")), 2)
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the stop took %s", took)
		}
		want(t, "turns that began before the end", a.store.called("begin"), 2*turnsPerCall)
		b := start(t, setup{name: "b", shelf: shelf, config: func(c *Config) { c.MaxConcurrent = 2 }})
		after(10 * time.Second)
		want(t, "replies of the next", len(b.wire.sends()), 50)
	})
}

// A flood of messages in a group whose replies don't get out: they wait in the storage, not in memory, and are all answered when
// DingTalk takes replies again.
func TestFloodWaitsInTheStorage(t *testing.T) {
	t.Parallel()
	for alone, flood := range map[bool]int{false: 2000, true: 200} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Bool
			net := &wire{send: func(context.Context, sessions.Outgoing) (Sent, error) {
				if !open.Load() {
					return Sent{Via: "webhook"}, &SendError{After: time.Second, Err: errAway}
				}
				return Sent{Via: "webhook", Part: 1}, nil
			}}
			w := start(t, setup{wire: net, config: func(c *Config) { c.AloneEach = alone }})
			for i := range flood {
				w.post(said(fmt.Sprint("m", i), "alice", "hello"))
			}
			after(time.Minute)
			if n := w.bot.outbox.waiting(); n > maxQueued {
				t.Errorf("%d replies wait in memory", n)
			}
			if n, most := len(w.model.requests("chat")), maxQueued+1; n > most {
				t.Errorf("%d answers were made for nobody, want at most %d", n, most)
			}
			open.Store(true)
			after(5 * time.Minute)
			for _, e := range w.store.mem.Events(t.Context(), group) {
				if e.State == sessions.Pending {
					t.Fatalf("event %d was never answered", e.ID)
				}
			}
			want(t, "replies in memory at the end", w.bot.outbox.waiting(), 0)
		})
	}
}

// Long messages that waited together are answered as far as they fit: no request is larger than the window, and none of
// them counts as broken for having been left for a later turn.
func TestLongMessagesAreNotMergedBeyondTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &script{chat: func(context.Context, Request) (Response, error) {
			<-time.After(time.Second)
			return text("read"), nil
		}}
		w := start(t, setup{model: model})
		for i := range 21 {
			w.post(said(fmt.Sprint("m", i), "alice", strings.Repeat("我们下周三上午在三号会议室开会。", 20<<10/48)))
		}
		after(5 * time.Minute)
		for _, e := range w.store.mem.Events(t.Context(), group) {
			if e.Role == sessions.RoleUser && e.State != sessions.Done {
				t.Errorf("event %d is %s", e.ID, e.State)
			}
		}
		for i, r := range model.requests("chat") {
			size := 0
			for _, m := range r.Messages {
				size += counter.Count(m.Content)
			}
			if size > small.Usable() {
				t.Errorf("request %d has %d tokens, the window holds %d", i, size, small.Usable())
			}
		}
	})
}
