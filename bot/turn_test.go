package bot_test

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

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

func TestTurnAnswersAndKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Say("m1", "alice", "hello there")
		w.Say("m2", "bob", "and me")
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"re: alice(u-alice): hello there", "re: bob(u-bob): and me"})
		var log []string
		for _, e := range w.Store.EventsOf(t.Context(), bottest.Group) {
			log = append(log, fmt.Sprintf("%d %s %s %s", e.Seq, e.Role, e.State, e.Content))
		}
		bottest.Want(t, "log", log, []string{
			"1 user done hello there", "2 assistant done re: alice(u-alice): hello there",
			"3 user done and me", "4 assistant done re: bob(u-bob): and me",
		})
		if s := w.State(bottest.Group); s.TotalTokens == 0 || s.LastSeq != 4 {
			t.Errorf("state %+v", s)
		}
	})
}

// A message that DingTalk delivers five times, before and after its answer, is asked and answered once.
func TestRedeliveryIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		for range 3 {
			w.Post(bottest.Said("m1", "alice", "once"))
		}
		synctest.Wait()
		for range 2 {
			w.Say("m1", "alice", "once")
		}
		bottest.After(5 * time.Second)
		bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 1)
		bottest.Want(t, "replies", len(w.Wire.Sends()), 1)
	})
}

// Messages that arrive while a turn runs are answered together in the next one, every author mentioned once, in order
// of arrival. They stand in the view after the answer that did not see them.
func TestWaitingMessagesAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if err := g.Pass(ctx); err != nil {
				return llm.Response{}, err
			}
			return bottest.Text(fmt.Sprintf("answer %d", len(r.Messages))), nil
		}}})
		w.Post(bottest.Said("m1", "alice", "first"))
		<-g.In
		for i, who := range []string{"bob", "carol", "bob", "alice"} {
			w.Post(bottest.Said(fmt.Sprintf("n%d", i), who, fmt.Sprintf("more %d", i)))
		}
		g.Out <- struct{}{}
		<-g.In
		g.Out <- struct{}{}
		synctest.Wait()
		sent := w.Wire.Sends()
		if len(sent) != 2 {
			t.Fatalf("%d replies, want 2", len(sent))
		}
		bottest.Want(t, "mentions", sent[1].Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-bob", Nick: "bob"}, {StaffID: "u-carol", Nick: "carol"}, {StaffID: "u-alice", Nick: "alice"}})
		var log []string
		for _, e := range w.Store.EventsOf(t.Context(), bottest.Group) {
			log = append(log, e.Content)
		}
		bottest.Want(t, "view", strings.Join(log, "|"), "first|answer 3|more 0|more 1|more 2|more 3|answer 8")
	})
}

func TestMergeCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.AloneEach = true },
			Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if strings.Contains(bottest.LastWords(r), "first") {
					if err := g.Pass(ctx); err != nil {
						return llm.Response{}, err
					}
				}
				return bottest.Text("to " + bottest.LastWords(r)), nil
			}},
		})
		w.Post(bottest.Said("m1", "alice", "first"))
		<-g.In
		for i := range 3 {
			w.Post(bottest.Said(fmt.Sprintf("n%d", i), "bob", fmt.Sprintf("more %d", i)))
		}
		g.Out <- struct{}{}
		synctest.Wait()
		bottest.Want(t, "replies", strings.Join(w.Wire.Texts(), "|"),
			"to alice(u-alice): first|to bob(u-bob): more 0|to bob(u-bob): more 1|to bob(u-bob): more 2")
	})
}

// More than one turn may take wait their turn at once, not for a sweep.
func TestMergeLimitGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		var first atomic.Bool
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.MaxMerged = 5 },
			Model: &bottest.Script{Chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
				if first.CompareAndSwap(false, true) {
					return bottest.Text("ok"), g.Pass(ctx)
				}
				return bottest.Text("ok"), nil
			}},
		})
		w.Post(bottest.Said("m0", "alice", "first"))
		<-g.In
		for i := range 12 {
			w.Post(bottest.Said(fmt.Sprintf("n%d", i), "bob", "more"))
		}
		g.Out <- struct{}{}
		synctest.Wait()
		bottest.Want(t, "turns", len(w.Model.Requests("chat")), 1+3)
	})
}

// Accepts from many goroutines, for a few sessions: turns of one session never overlap, and everybody is answered.
func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rooms, each = 4, 40
		var busy [rooms]atomic.Int32
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			var room int
			_, _ = fmt.Sscanf(bottest.LastWords(r), "room %d", &room)
			if busy[room].Add(1) > 1 {
				t.Errorf("two turns in room %d", room)
			}
			<-time.After(time.Millisecond)
			busy[room].Add(-1)
			return bottest.Text("ok"), nil
		}}})
		var wg sync.WaitGroup
		for i := range rooms * each {
			wg.Go(func() {
				m := bottest.Said(fmt.Sprintf("m%d", i), "alice", fmt.Sprintf("room %d", i%rooms))
				m.ConversationType, m.ConversationID = sessions.Private, sessions.ConversationID(fmt.Sprint("c", i%rooms))
				w.Post(m)
			})
		}
		wg.Wait()
		bottest.After(2 * time.Second)
		for room := range rooms {
			key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", room)), "")
			done := 0
			for _, e := range w.Store.EventsOf(t.Context(), key) {
				if e.Role == sessions.RoleUser && e.State == sessions.Done {
					done++
				}
			}
			bottest.Want(t, fmt.Sprintf("answered in room %d", room), done, each)
		}
	})
}

// A command and its answer are committed as events that no search finds, and nothing else is.
func TestCommandsAreNoFinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Say("m1", "alice", "hello")
		bottest.Want(t, "turns that no search finds", w.Store.Flushes(bottest.Group).Hidden, 0)
		w.Say("m2", "alice", "/status")
		w.Say("m3", "alice", "／记忆")
		w.Say("m4", "alice", "what does /status tell?")
		bottest.Want(t, "turns that no search finds", w.Store.Flushes(bottest.Group).Hidden, 2)
	})
}

// While the storage is away the commit is tried again; the model is not asked again for that.
func TestCommitOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Store.Fail(bottest.Times(5, "commit", bottest.ErrAway))
		w.Say("m1", "alice", "hello")
		bottest.Want(t, "replies during the outage", len(w.Wire.Sends()), 0)
		bottest.After(10 * time.Second)
		bottest.Want(t, "replies", len(w.Wire.Sends()), 1)
		bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 1)
	})
}

// A commit whose answer was lost is not made twice, and its reply goes out without waiting to be found by chance.
func TestCommitWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Store.Lose(bottest.Times(1, "commit", bottest.ErrAway))
		w.Post(bottest.Said("m1", "alice", "hello"))
		bottest.After(5 * time.Second)
		bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 1)
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"re: alice(u-alice): hello"})
		bottest.Want(t, "events", len(w.Store.EventsOf(t.Context(), bottest.Group)), 2)
	})
}

// P44: one hanging or failing conversation does not delay another.
func TestSessionsAreIndependent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			switch {
			case strings.Contains(bottest.LastWords(r), "hang"):
				<-ctx.Done()
				return llm.Response{}, context.Cause(ctx)
			case strings.Contains(bottest.LastWords(r), "panic"):
				panic("in the model")
			}
			return bottest.Text("ok"), nil
		}}})
		for i := range 30 {
			m := bottest.Said(fmt.Sprintf("h%d", i), "bob", []string{"hang", "panic"}[i%2])
			m.ConversationID = sessions.ConversationID(fmt.Sprintf("bad%d", i))
			w.Post(m)
		}
		began := time.Now()
		w.Say("m1", "alice", "hello")
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"ok"})
		bottest.Want(t, "waited", time.Since(began), 0)
	})
}

// P43: while a model is asked, no call of the storage is open.
func TestNothingIsHeldWhileTheModelIsAsked(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"chat", "flush", "summary"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := bottest.NewGate()
				m := &bottest.Script{}
				var held sync.Once
				hold := func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
					held.Do(func() { err = g.Pass(ctx) })
					return bottest.Text("ok"), err
				}
				w := bottest.Start(t, bottest.Setup{Model: m})
				w.Fill(3000)
				m.Mu.Lock()
				switch kind {
				case "chat":
					m.Chat = hold
				case "flush":
					m.Flush = hold
				case "summary":
					m.Summary = hold
				}
				m.Mu.Unlock()
				w.Post(bottest.Said("last", "alice", bottest.Prose(1, 1300)))
				<-g.In
				synctest.Wait()
				bottest.Want(t, "calls open", w.Store.UnderWay(), 0)
				g.Out <- struct{}{}
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
		"Chinese":                 {bottest.Said("1", "alice", "你好"), wording.Say(wording.Busy, "zh")},
		"English":                 {bottest.Said("1", "alice", "hello"), wording.Say(wording.Busy, "en")},
		"mixed":                   {bottest.Said("1", "alice", "帮我 review 一下"), wording.Say(wording.Busy, "zh")},
		"digits":                  {bottest.Said("1", "alice", "1234?"), wording.Say(wording.Busy, "zh")},
		"English with a quote":    {quoting(bottest.Said("1", "alice", "what is this?"), "Bob", "some words"), wording.Say(wording.Busy, "en")},
		"English, Chinese quoted": {quoting(bottest.Said("1", "alice", "what is this?"), "张三", "发布说明"), wording.Say(wording.Busy, "en")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: broken}})
				w.Post(c.m)
				synctest.Wait()
				bottest.Want(t, "replies", w.Wire.Texts(), []string{c.want})
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
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Name = "小潮" }})
		w.Post(quoting(bottest.Said("1", "alice", "who does this?"), "bob", "deploy on friday"))
		synctest.Wait()
		if asked := bottest.LastWords(w.Model.Requests("chat")[0]); !strings.Contains(asked, "bob: deploy on friday") || !strings.Contains(asked, "who does this?") {
			t.Errorf("the model read %q", asked)
		}
		own := quoting(bottest.Said("2", "alice", "really?"), "", "an answer")
		own.Quote.FromBot = true
		w.Post(own)
		synctest.Wait()
		if asked := bottest.LastWords(w.Model.Requests("chat")[1]); !strings.Contains(asked, "小潮: an answer") {
			t.Errorf("the model read %q, want the bot by its name", asked)
		}
		w.Post(quoting(bottest.Said("3", "alice", "/help"), "bob", "words"))
		synctest.Wait()
		bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 2)
		if got := w.Wire.Texts()[2]; !strings.Contains(got, "`/stop`") {
			t.Errorf("/help as a reply was answered %q", got)
		}
	})
}
