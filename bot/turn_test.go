package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/sessions"
)

// gate has a model wait until the test lets it go on.
type gate struct{ in, out chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

// pass announces the caller and waits to be let through, or for the end of ctx.
func (g gate) pass(ctx context.Context) error {
	select {
	case g.in <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-g.out:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestTurnAnswersAndKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.say("m1", "alice", "hello there")
		w.say("m2", "bob", "and me")
		want(t, "replies", w.wire.texts(), []string{"re: alice(u-alice): hello there", "re: bob(u-bob): and me"})
		var log []string
		for _, e := range w.store.log(t.Context(), group) {
			log = append(log, fmt.Sprintf("%d %s %s %s", e.Seq, e.Role, e.State, e.Content))
		}
		want(t, "log", log, []string{
			"1 user done hello there", "2 assistant done re: alice(u-alice): hello there",
			"3 user done and me", "4 assistant done re: bob(u-bob): and me",
		})
		if s := w.state(group); s.TotalTokens == 0 || s.LastSeq != 4 {
			t.Errorf("state %+v", s)
		}
	})
}

// A message that DingTalk delivers five times, before and after its answer, is asked and answered once.
func TestRedeliveryIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		for range 3 {
			w.post(said("m1", "alice", "once"))
		}
		synctest.Wait()
		for range 2 {
			w.say("m1", "alice", "once")
		}
		after(5 * time.Second)
		want(t, "model calls", len(w.model.requests("chat")), 1)
		want(t, "replies", len(w.wire.sends()), 1)
	})
}

// Messages that arrive while a turn runs are answered together in the next one, every author mentioned once, in order
// of arrival. They stand in the view after the answer that did not see them.
func TestWaitingMessagesAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := start(t, setup{model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if err := g.pass(ctx); err != nil {
				return llm.Response{}, err
			}
			return text(fmt.Sprintf("answer %d", len(r.Messages))), nil
		}}})
		w.post(said("m1", "alice", "first"))
		<-g.in
		for i, who := range []string{"bob", "carol", "bob", "alice"} {
			w.post(said(fmt.Sprintf("n%d", i), who, fmt.Sprintf("more %d", i)))
		}
		g.out <- struct{}{}
		<-g.in
		g.out <- struct{}{}
		synctest.Wait()
		sent := w.wire.sends()
		if len(sent) != 2 {
			t.Fatalf("%d replies, want 2", len(sent))
		}
		want(t, "mentions", sent[1].Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-bob", Nick: "bob"}, {StaffID: "u-carol", Nick: "carol"}, {StaffID: "u-alice", Nick: "alice"}})
		var log []string
		for _, e := range w.store.log(t.Context(), group) {
			log = append(log, e.Content)
		}
		want(t, "view", strings.Join(log, "|"), "first|answer 3|more 0|more 1|more 2|more 3|answer 8")
	})
}

func TestMergeCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := start(t, setup{
			config: func(c *Config) { c.AloneEach = true },
			model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if strings.Contains(lastWords(r), "first") {
					if err := g.pass(ctx); err != nil {
						return llm.Response{}, err
					}
				}
				return text("to " + lastWords(r)), nil
			}},
		})
		w.post(said("m1", "alice", "first"))
		<-g.in
		for i := range 3 {
			w.post(said(fmt.Sprintf("n%d", i), "bob", fmt.Sprintf("more %d", i)))
		}
		g.out <- struct{}{}
		synctest.Wait()
		want(t, "replies", strings.Join(w.wire.texts(), "|"),
			"to alice(u-alice): first|to bob(u-bob): more 0|to bob(u-bob): more 1|to bob(u-bob): more 2")
	})
}

// More than one turn may take wait their turn at once, not for a sweep.
func TestMergeLimitGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var first atomic.Bool
		w := start(t, setup{
			config: func(c *Config) { c.MaxMerged = 5 },
			model: &script{chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
				if first.CompareAndSwap(false, true) {
					return text("ok"), g.pass(ctx)
				}
				return text("ok"), nil
			}},
		})
		w.post(said("m0", "alice", "first"))
		<-g.in
		for i := range 12 {
			w.post(said(fmt.Sprintf("n%d", i), "bob", "more"))
		}
		g.out <- struct{}{}
		synctest.Wait()
		want(t, "turns", len(w.model.requests("chat")), 1+3)
	})
}

// Accepts from many goroutines, for a few sessions: turns of one session never overlap, and everybody is answered.
func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rooms, each = 4, 40
		var busy [rooms]atomic.Int32
		w := start(t, setup{model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			var room int
			_, _ = fmt.Sscanf(lastWords(r), "room %d", &room)
			if busy[room].Add(1) > 1 {
				t.Errorf("two turns in room %d", room)
			}
			<-time.After(time.Millisecond)
			busy[room].Add(-1)
			return text("ok"), nil
		}}})
		var wg sync.WaitGroup
		for i := range rooms * each {
			wg.Go(func() {
				m := said(fmt.Sprintf("m%d", i), "alice", fmt.Sprintf("room %d", i%rooms))
				m.ConversationType, m.ConversationID = sessions.Private, sessions.ConversationID(fmt.Sprint("c", i%rooms))
				w.post(m)
			})
		}
		wg.Wait()
		after(2 * time.Second)
		for room := range rooms {
			key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", room)), "")
			done := 0
			for _, e := range w.store.log(t.Context(), key) {
				if e.Role == sessions.RoleUser && e.State == sessions.Done {
					done++
				}
			}
			want(t, fmt.Sprintf("answered in room %d", room), done, each)
		}
	})
}

// A command and its answer are committed as events that no search finds, and nothing else is.
func TestCommandsAreNoFinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.say("m1", "alice", "hello")
		want(t, "turns that no search finds", w.store.flushes(group).hidden, 0)
		w.say("m2", "alice", "/status")
		w.say("m3", "alice", "／记忆")
		w.say("m4", "alice", "what does /status tell?")
		want(t, "turns that no search finds", w.store.flushes(group).hidden, 2)
	})
}

// While the storage is away the commit is tried again; the model is not asked again for that.
func TestCommitOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.store.fail(times(5, "commit", errAway))
		w.say("m1", "alice", "hello")
		want(t, "replies during the outage", len(w.wire.sends()), 0)
		after(10 * time.Second)
		want(t, "replies", len(w.wire.sends()), 1)
		want(t, "model calls", len(w.model.requests("chat")), 1)
	})
}

// A commit whose answer was lost is not made twice, and its reply goes out without waiting to be found by chance.
func TestCommitWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.store.lose(times(1, "commit", errAway))
		w.post(said("m1", "alice", "hello"))
		after(5 * time.Second)
		want(t, "model calls", len(w.model.requests("chat")), 1)
		want(t, "replies", w.wire.texts(), []string{"re: alice(u-alice): hello"})
		want(t, "events", len(w.store.log(t.Context(), group)), 2)
	})
}

// P44: one hanging or failing conversation does not delay another.
func TestSessionsAreIndependent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			switch {
			case strings.Contains(lastWords(r), "hang"):
				<-ctx.Done()
				return llm.Response{}, context.Cause(ctx)
			case strings.Contains(lastWords(r), "panic"):
				panic("in the model")
			}
			return text("ok"), nil
		}}})
		for i := range 30 {
			m := said(fmt.Sprintf("h%d", i), "bob", []string{"hang", "panic"}[i%2])
			m.ConversationID = sessions.ConversationID(fmt.Sprintf("bad%d", i))
			w.post(m)
		}
		began := time.Now()
		w.say("m1", "alice", "hello")
		want(t, "replies", w.wire.texts(), []string{"ok"})
		want(t, "waited", time.Since(began), 0)
	})
}

// P43: while a model is asked, no call of the storage is open.
func TestNothingIsHeldWhileTheModelIsAsked(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"chat", "flush", "summary"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				m := &script{}
				var held sync.Once
				hold := func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
					held.Do(func() { err = g.pass(ctx) })
					return text("ok"), err
				}
				w := start(t, setup{model: m})
				w.fill(3000)
				m.mu.Lock()
				switch kind {
				case "chat":
					m.chat = hold
				case "flush":
					m.flush = hold
				case "summary":
					m.summary = hold
				}
				m.mu.Unlock()
				w.post(said("last", "alice", prose(1, 1300)))
				<-g.in
				synctest.Wait()
				want(t, "calls open", w.store.underWay(), 0)
				g.out <- struct{}{}
			})
		})
	}
}

// A message whose sender asks in English gets English words of ours, whatever it replies to.
func TestOwnWordsAreInTheAskersLanguage(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("key sk-secret at https://provider.internal")}
	}
	for name, c := range map[string]struct {
		m    sessions.Message
		want string
	}{
		"Chinese":                 {said("1", "alice", "你好"), wording.Say(wording.Busy, "zh")},
		"English":                 {said("1", "alice", "hello"), wording.Say(wording.Busy, "en")},
		"mixed":                   {said("1", "alice", "帮我 review 一下"), wording.Say(wording.Busy, "zh")},
		"digits":                  {said("1", "alice", "1234?"), wording.Say(wording.Busy, "zh")},
		"English with a quote":    {quoting(said("1", "alice", "what is this?"), "Bob", "some words"), wording.Say(wording.Busy, "en")},
		"English, Chinese quoted": {quoting(said("1", "alice", "what is this?"), "张三", "发布说明"), wording.Say(wording.Busy, "en")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{model: &script{chat: broken}})
				w.post(c.m)
				synctest.Wait()
				want(t, "replies", w.wire.texts(), []string{c.want})
			})
		})
	}
}

func quoting(m sessions.Message, nick, words string) sessions.Message {
	m.Quote = &sessions.Quote{Nick: nick, Text: words}
	return m
}

// The model reads the message that a person replies to; a command sent as a reply is a command all the same.
func TestQuotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Name = "小潮" }})
		w.post(quoting(said("1", "alice", "who does this?"), "bob", "deploy on friday"))
		synctest.Wait()
		if asked := lastWords(w.model.requests("chat")[0]); !strings.Contains(asked, "bob: deploy on friday") || !strings.Contains(asked, "who does this?") {
			t.Errorf("the model read %q", asked)
		}
		own := quoting(said("2", "alice", "really?"), "", "an answer")
		own.Quote.FromBot = true
		w.post(own)
		synctest.Wait()
		if asked := lastWords(w.model.requests("chat")[1]); !strings.Contains(asked, "小潮: an answer") {
			t.Errorf("the model read %q, want the bot by its name", asked)
		}
		w.post(quoting(said("3", "alice", "/help"), "bob", "words"))
		synctest.Wait()
		want(t, "model calls", len(w.model.requests("chat")), 2)
		if got := w.wire.texts()[2]; !strings.Contains(got, "`/stop`") {
			t.Errorf("/help as a reply was answered %q", got)
		}
	})
}
