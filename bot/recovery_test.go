package bot_test

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// fleet is replicas on one storage that are started again soon after each death, with questions that kill a process each
// time a model is asked about them.
type fleet struct {
	t      *testing.T
	shelf  *bottest.Shelf
	worlds []*bottest.World
	dead   []*atomic.Bool
	back   []time.Time // when a dead replica starts again
	boots  int
	deaths atomic.Int32                     // by killing questions
	delay  func(words string) time.Duration // before an answer, or a death
}

func newFleet(t *testing.T, replicas int, delay func(words string) time.Duration) *fleet {
	t.Helper()
	f := &fleet{t: t, shelf: bottest.NewShelf(), delay: delay}
	for range replicas {
		f.worlds, f.dead, f.back = append(f.worlds, nil), append(f.dead, nil), append(f.back, time.Time{})
	}
	f.revive()
	return f
}

// revive starts replicas that have been dead for a second.
func (f *fleet) revive() {
	for i := range f.worlds {
		if f.dead[i] != nil && !f.dead[i].Load() {
			continue
		}
		if f.dead[i] != nil && f.back[i].IsZero() {
			f.back[i] = time.Now().Add(time.Second)
		}
		if time.Now().Before(f.back[i]) {
			continue
		}
		f.boots++
		dead, started := &atomic.Bool{}, make(chan struct{})
		f.dead[i], f.back[i] = dead, time.Time{}
		f.worlds[i] = bottest.Start(f.t, bottest.Setup{Name: sessions.ReplicaID(fmt.Sprint("r", f.boots)), Shelf: f.shelf, Model: &bottest.Script{
			Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				asked := wordsOf(r)
				select {
				case <-time.After(f.delay(asked)):
				case <-ctx.Done():
					return llm.Response{}, context.Cause(ctx)
				}
				if !strings.Contains(asked, "boom") {
					return bottest.Text("noted"), nil
				}
				<-started
				if dead.CompareAndSwap(false, true) {
					f.deaths.Add(1)
					f.worlds[i].Kill()
				}
				return bottest.Hang(ctx, r)
			},
		}})
		close(started)
	}
}

// killAll is an operator's kill of all replicas.
func (f *fleet) killAll() {
	for i, w := range f.worlds {
		if f.dead[i].CompareAndSwap(false, true) {
			w.Kill()
		}
	}
}

// post hands a message to a live replica. It reports false without one.
func (f *fleet) post(m sessions.Message) bool {
	for i, w := range f.worlds {
		if !f.dead[i].Load() && w.Wire.Accept(f.t.Context(), m) == nil {
			return true
		}
	}
	return false
}

func wordsOf(r llm.Request) string {
	var words []string
	for _, m := range r.Messages {
		if m.Role == "user" {
			words = append(words, m.Content)
		}
	}
	return strings.Join(words, "\n")
}

// states counts people's messages by state and words.
func (f *fleet) states(conversations int) map[string]int {
	n := map[string]int{}
	for i := range conversations {
		for _, e := range f.shelf.Mem.Events(f.t.Context(), sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", i)), "")) {
			if e.Role == sessions.RoleUser {
				n[string(e.State)+" "+e.Content]++
			}
		}
	}
	return n
}

// run posts the messages at their times and ends when none waits.
func (f *fleet) run(at map[time.Duration][]sessions.Message, kills []time.Duration, conversations int) {
	f.t.Helper()
	const step = 100 * time.Millisecond
	for now := time.Duration(0); now < time.Hour; now += step {
		for _, m := range at[now] {
			if !f.post(m) { // DingTalk pushes it again
				at[now+step] = append(at[now+step], m)
			}
		}
		delete(at, now)
		if slices.Contains(kills, now) {
			f.killAll()
		}
		bottest.After(step)
		f.revive()
		n := f.states(conversations)
		if len(at) == 0 && n["pending hello"]+n["pending boom"] == 0 {
			return
		}
	}
	f.t.Errorf("messages wait for ever: %v", f.states(conversations))
}

// For any set of killing questions among others, at any times: each of the others is answered, each killing one is set
// aside, and the deaths are few. Answers may take longer than a suspect holds up others. No question is set aside that
// kills nothing, whatever an operator kills.
func TestKillingMessagesAreNarrowedDown(t *testing.T) {
	t.Parallel()
	enough := enoughRuns()
	failed := new(atomic.Bool)
	rapid.Check(t, func(rt *rapid.T) {
		if enough() && !failed.Load() {
			return
		}
		bubble(t, func(t *testing.T) {
			t.Helper()
			conversations := rapid.IntRange(1, 31).Draw(rt, "conversations")
			killers := rapid.IntRange(0, 3).Draw(rt, "killers")
			times := rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 7 * time.Second, 20 * time.Second, 60 * time.Second})
			at := map[time.Duration][]sessions.Message{}
			count := map[string]int{}
			for i := range conversations {
				for range rapid.IntRange(1, 2).Draw(rt, "messages") {
					words := "hello"
					if count["boom"] < killers && rapid.IntRange(0, conversations-i).Draw(rt, "kills") <= killers {
						words = "boom"
					}
					m := bottest.Elsewhere(i, words)
					m.ID = sessions.MessageID(fmt.Sprint("m", i, "-", count["hello"]+count["boom"]))
					when := times.Draw(rt, "at")
					at[when] = append(at[when], m)
					count[words]++
				}
			}
			var kills []time.Duration
			if count["boom"] == 0 { // two deaths set nothing aside
				kills = rapid.SliceOfN(rapid.SampledFrom([]time.Duration{time.Second, 6 * time.Second, 7 * time.Second, 8 * time.Second}), 0, 2).Draw(rt, "operator kills")
			}
			slow := rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second, 15 * time.Second}).Draw(rt, "until a death")
			model := rapid.SampledFrom([]time.Duration{2 * time.Second, 20 * time.Second}).Draw(rt, "until an answer")
			f := newFleet(t, rapid.IntRange(1, 2).Draw(rt, "replicas"), func(words string) time.Duration {
				if strings.Contains(words, "boom") {
					return slow
				}
				return model
			})
			f.run(at, kills, conversations)
			got := f.states(conversations)
			if got["done hello"] != count["hello"] || got["dead boom"] != count["boom"] {
				failed.Store(true)
				rt.Errorf("messages end as %v, want all of %v answered or set aside", got, count)
			}
			if most := count["boom"] * (3 + max(1, bits.Len(uint(conversations-1)))); int(f.deaths.Load()) > most {
				failed.Store(true)
				rt.Errorf("%d deaths by %d of %d conversations, want %d at most", f.deaths.Load(), count["boom"], conversations, most)
			}
		})
	})
}

// A question that kills its process whenever a model is asked is set aside after three deaths of its own.
func TestLoneKillerDiesThrice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, func(string) time.Duration { return 0 })
		f.run(map[time.Duration][]sessions.Message{0: {bottest.Elsewhere(0, "boom")}}, nil, 1)
		bottest.Want(t, "deaths", f.deaths.Load(), int32(bottest.MaxBroken))
		bottest.Want(t, "dead letters", f.states(1)["dead boom"], 1)
	})
}

// After a kill all are answered at the usual concurrency, after a second one by halves.
func TestRecoveryTakesFewModelTimes(t *testing.T) {
	t.Parallel()
	const conversations, model, ttl = 24, 20 * time.Second, 5 * time.Second
	for name, c := range map[string]struct {
		kills []time.Duration
		most  time.Duration // from the last kill
	}{
		"one kill":  {[]time.Duration{time.Second}, ttl + model + 3*time.Second},
		"two kills": {[]time.Duration{time.Second, 15 * time.Second}, ttl + 2*model + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 2, func(string) time.Duration { return model })
				at := map[time.Duration][]sessions.Message{}
				for i := range conversations {
					at[0] = append(at[0], bottest.Elsewhere(i, "hello"))
				}
				began := time.Now()
				f.run(at, c.kills, conversations)
				if took := time.Since(began) - c.kills[len(c.kills)-1]; took > c.most {
					t.Errorf("all are answered %s after the last kill, want %s at most", took, c.most)
				}
			})
		})
	}
}
