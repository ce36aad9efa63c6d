package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
)

// question is one of a plan: the way of its answer, and what happens before and after it.
type question struct {
	show    string        // card: if earlier answers are sent; opened: by an earlier attempt, whatever was sent; empty: none
	leaves  bool          // DingTalk does not end its card
	dead    bool          // its webhook is of no use
	faults  []string      // its first attempts
	gap     time.Duration // before it
	killed  bool          // its replica is killed before it
	noCalls bool          // the month's calls are used up from here on
}

// plannedWays is a DingTalk that answers by a plan, and the display of its cards. All replicas share it.
type plannedWays struct {
	mu    sync.Mutex
	plan  []question
	store *bottest.Store
	calls bool
	seen  []int // answers in the order in which people saw them first
}

var errLate = errors.New("the answer came late")

func (p *plannedWays) Show(ctx context.Context, s chat.Shown) chat.Live {
	switch q := p.plan[numberOf(s.Asked[0].Content)]; q.show {
	case "opened":
		return bottest.Carded(s.Tracks[0])
	case "card":
		if s.Sent(ctx) {
			return bottest.Carded(s.Tracks[0])
		}
	}
	return bottest.Carded("")
}

func numberOf(text string) (n int) {
	_, _ = fmt.Sscan(numbered.FindStringSubmatch(text)[1], &n)
	return n
}

func (p *plannedWays) send(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.plan[numberOf(o.Reply.Text)]
	fault := ""
	if len(q.faults) > 0 {
		fault, q.faults = q.faults[0], q.faults[1:]
	}
	if fault == "away" {
		return chat.Sent{}, errors.New("502")
	}
	sent := chat.Sent{Via: chat.ViaCard, Card: sessions.CardFinished, Part: 1}
	if o.Reply.Target.Card != "" && q.leaves {
		if err := p.store.Mem.Cards.LeaveCard(ctx, o); err != nil {
			return chat.Sent{}, err
		}
		o.Reply.Target.Card = ""
	}
	if o.Reply.Target.Card == "" {
		sent = bottest.Arrived
		_, number, _ := strings.Cut(o.Reply.Target.Webhook, "=")
		if number == "" || p.plan[numberOf("q"+number+".")].dead {
			if !p.calls {
				return chat.Sent{}, &chat.SendError{After: time.Hour, Aside: true, Err: errors.New("no calls are left")}
			}
			sent.Via = chat.ViaOpenAPI
		}
	}
	if fault == "busy" {
		return chat.Sent{}, &chat.SendError{After: 2 * time.Second, Err: errors.New("130101")}
	}
	for _, m := range numbered.FindAllString(o.Reply.Text, -1) {
		if n := numberOf(m); !slices.Contains(p.seen, n) {
			p.seen = append(p.seen, n)
		}
	}
	if fault == "doubt" {
		return chat.Sent{}, &chat.SendError{Maybe: true, Err: errLate}
	}
	return sent, nil
}

func (p *plannedWays) start(t *testing.T, name string, s *bottest.Shelf) *bottest.World {
	w := bottest.Start(t, bottest.Setup{Name: sessions.ReplicaID(name), Shelf: s, Wire: &bottest.Wire{Deliver: p.send}, Config: func(c *bot.Config) { c.Display, c.MaxMerged = p, 1 }})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store = w.Store
	return w
}

// Answers of a session are seen in their order by any way: a card, a card that turns into a message, a webhook, the open API, with
// or without calls. Kills between them change nothing. A question whose webhook is of use brings all of them within a
// minute.
func TestAnswersAreInOrderByAnyWay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := &plannedWays{calls: true}
		for range rapid.IntRange(2, 6).Draw(rt, "questions") {
			p.plan = append(p.plan, question{
				show:    rapid.SampledFrom([]string{"", "card", "opened"}).Draw(rt, "show"),
				leaves:  rapid.IntRange(0, 3).Draw(rt, "leaves") == 0,
				dead:    rapid.Bool().Draw(rt, "dead"),
				faults:  rapid.SliceOfN(rapid.SampledFrom([]string{"", "away", "busy", "doubt"}), 0, 2).Draw(rt, "faults"),
				gap:     time.Duration(rapid.IntRange(0, 3).Draw(rt, "gap")) * time.Second,
				killed:  rapid.IntRange(0, 4).Draw(rt, "killed") == 0,
				noCalls: rapid.IntRange(0, 2).Draw(rt, "calls") == 0,
			})
		}
		soon := 0
		synctest.Test(t, func(t *testing.T) {
			w := p.start(t, "r", bottest.NewShelf())
			for i, q := range slices.Clone(p.plan) {
				bottest.After(q.gap)
				if q.killed {
					w.Kill()
					w = p.start(t, fmt.Sprint("r", i), w.Store.Shelf)
				}
				p.mu.Lock()
				p.calls = !q.noCalls
				p.mu.Unlock()
				m := bottest.Said(fmt.Sprint("m", i), "alice", fmt.Sprintf("q%d.", i))
				m.Webhook, m.WebhookExpires = fmt.Sprint(m.Webhook, "?session=", i), time.Now().Add(90*time.Minute)
				w.Post(m)
				synctest.Wait()
			}
			bottest.After(time.Minute)
			p.mu.Lock()
			soon, p.calls = len(p.seen), true
			p.mu.Unlock()
			bottest.After(70 * time.Minute)
		})
		if len(p.seen) != len(p.plan) || !slices.IsSorted(p.seen) {
			rt.Fatalf("people saw %v of %d answers", p.seen, len(p.plan))
		}
		if !p.plan[len(p.plan)-1].dead && soon < len(p.plan) {
			rt.Fatalf("people saw %d of %d answers within a minute", soon, len(p.plan))
		}
	})
}
