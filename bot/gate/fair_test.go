package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// lineBook is who waits, as a test keeps it in mind, and who was served since each of them was or came.
type lineBook struct {
	tickets []booked
	passed  map[string]map[string]bool // waiter -> conversations served meanwhile
}

type booked struct {
	*ticket
	who waiter
}

// names are the two levels at which turns alternate.
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

// served notes a served waiter, and reports a waiter that the same one overtook twice.
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

// For any order of arrivals, cancellations and releases: no waiter is overtaken twice by the same conversation, nor by
// the same session of its own. Nothing is left behind when all are gone.
func TestWaitersAreServedWithinARound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var r ring
		book := lineBook{passed: map[string]map[string]bool{}}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			switch do := rapid.IntRange(0, 9).Draw(rt, "do"); {
			case do < 5:
				c, s := rapid.IntRange(0, 3).Draw(rt, "conversation"), rapid.IntRange(0, 2).Draw(rt, "session")
				who := WaiterOf(sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", c)), sessions.UserID(fmt.Sprint("s", s))))
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

// Hundreds of waiters arrive at random, wait, give up, or hold a place for a while. There are never more than the
// places, none is idle while a waiter waits, and none is lost.
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
			f := NewFairSemaphore(places, end)
			var inside, given, quit atomic.Int64
			var all sync.WaitGroup
			for _, v := range visits {
				all.Go(func() {
					<-time.After(time.Duration(v.comes) * time.Second)
					ctx, stop := context.WithTimeout(t.Context(), time.Duration(v.patience)*time.Second)
					defer stop()
					leave, err := f.Enter(ctx, WaiterOf(sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint(v.conversation)), "")))
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, llm.ErrStop) {
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
