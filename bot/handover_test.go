package bot_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// While a replica stops, another one answers a message in a session without a turn as soon as it is flushed. It does
// not wait long for a flush that hangs, nor for other sessions' turns. A session with a turn is answered when that has
// ended.
func TestSessionsAreHandedOverOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := func(c sessions.ConversationID, id, words string) sessions.Message {
			m := bottest.Said(id, "alice", words)
			m.ConversationID = c
			return m
		}
		slow := &bottest.Script{}
		slow.Chat = func(ctx context.Context, r llm.Request) (llm.Response, error) {
			d := map[bool]time.Duration{true: 10 * time.Second, false: 0}[strings.Contains(bottest.LastWords(r), "slow")]
			if strings.Contains(bottest.LastWords(r), "short") {
				d = 2 * time.Second
			}
			select {
			case <-time.After(d):
				return bottest.Text("re: " + bottest.LastWords(r)), nil
			case <-ctx.Done():
				return llm.Response{}, context.Cause(ctx)
			}
		}
		slow.Flush = func(ctx context.Context, _ llm.Request) (llm.Response, error) { // no caller waits for its end
			<-ctx.Done()
			return llm.Response{}, context.Cause(ctx)
		}
		s := bottest.NewShelf()
		a := bottest.Start(t, bottest.Setup{Shelf: s, Model: slow, Name: "a"})
		b := bottest.Start(t, bottest.Setup{Shelf: s, Name: "b"})
		for _, c := range []sessions.ConversationID{"c1", "c2", "c3"} {
			a.Post(in(c, "first "+string(c), "first"))
		}
		bottest.After(time.Second)
		a.Post(in("c1", "m1", "slow"))
		a.Post(in("c2", "m2", "short"))
		synctest.Wait()
		a.Begin()
		synctest.Wait()
		b.Post(in("c2", "m3", "after the short one"))
		b.Post(in("c3", "m4", "at once"))
		answered := func(words string) bool {
			return slices.ContainsFunc(b.Wire.Texts(), func(x string) bool { return strings.HasSuffix(x, words) })
		}
		bottest.After(bot.LeaveFlush + 50*time.Millisecond)
		bottest.Want(t, "answered at once", answered("at once"), true)
		bottest.After(bot.LeaveFlush + 50*time.Millisecond)
		bottest.Want(t, "answered after the turn", answered("after the short one"), true)
		a.Stop()
		bottest.After(time.Second)
		bottest.Want(t, "answers of the one that stopped", len(a.Wire.Texts()), 5)
		bottest.Want(t, "answers of the other", len(b.Wire.Texts()), 2)
		sum := summary(a)
		bottest.Want(t, "summary", fmt.Sprint(sum["sessions"], sum["flushed"], sum["owed"]), "3 0 3")
		bottest.Want(t, "failures counted", a.Store.Flushes(sessions.NewKey("robot", "c3", "")).Debt.Failures, 0)
	})
}

// slowAt answers what ends in "slow" when the gate opens, and all else at once.
func slowAt(g bottest.Gate) func(context.Context, llm.Request) (llm.Response, error) {
	return func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if strings.HasSuffix(bottest.LastWords(r), "slow") {
			return bottest.Text("done"), g.Pass(ctx)
		}
		return bottest.Text("quick"), nil
	}
}

// When any step fails while a session is handed over in the middle of a stop, the stop's account counts the session
// once. An unflushed range is owed.
func TestHandOverThatFailsIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hang bool
		fail string
		want string // sessions, flushed, owed
	}{
		"the flush is cut off":                           {true, "", "1 0 1"},
		"the flush is cut off, the lease does not go":    {true, "release", "1 0 1"},
		"the flush comes through, the lease does not go": {false, "release", "1 1 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := bottest.NewGate()
				m := &bottest.Script{Chat: slowAt(g)}
				m.Flush = func(ctx context.Context, _ llm.Request) (llm.Response, error) {
					if c.hang {
						<-ctx.Done()
						return llm.Response{}, context.Cause(ctx)
					}
					return bottest.SaveCall("a fact"), nil
				}
				s := bottest.NewShelf()
				a := bottest.Start(t, bottest.Setup{Shelf: s, Model: m, Name: "a"})
				b := bottest.Start(t, bottest.Setup{Shelf: s, Name: "b"})
				a.Post(bottest.Said("m1", "alice", "slow"))
				<-g.In
				a.Begin()
				synctest.Wait()
				a.Store.Fail(bottest.Times(1, c.fail, bottest.ErrAway))
				b.Post(bottest.Said("m2", "bob", "quick"))
				synctest.Wait()
				g.Out <- struct{}{}
				a.Stop()
				sum := summary(a)
				bottest.Want(t, "summary", fmt.Sprint(sum["sessions"], sum["flushed"], sum["owed"]), c.want)
				f := a.Store.Flushes(bottest.Group)
				bottest.Want(t, "owed or flushed", f.Owed > 0 || f.Seq > 0, true)
				bottest.After(time.Second)
				bottest.Want(t, "answers of the other", len(b.Wire.Texts()), 1)
			})
		})
	}
}

// The flush of a session with a waiting message is part of the stop: it is awaited and counted, also when no other work
// is left.
func TestStopWaitsForTheFlushBeforeAHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		m := &bottest.Script{Chat: slowAt(g)}
		m.Flush = func(context.Context, llm.Request) (llm.Response, error) {
			<-time.After(bot.LeaveFlush / 2)
			return bottest.SaveCall("a fact"), nil
		}
		s := bottest.NewShelf()
		a := bottest.Start(t, bottest.Setup{Shelf: s, Model: m, Name: "a"})
		b := bottest.Start(t, bottest.Setup{Shelf: s, Name: "b"})
		a.Post(bottest.Said("m1", "alice", "slow"))
		<-g.In
		a.Begin()
		synctest.Wait()
		b.Post(bottest.Said("m2", "bob", "quick"))
		synctest.Wait()
		g.Out <- struct{}{}
		a.Stop()
		sum := summary(a)
		bottest.Want(t, "summary", fmt.Sprint(sum["sessions"], sum["flushed"], sum["saved"], sum["owed"]), "1 1 1 0")
		bottest.After(time.Second)
		bottest.Want(t, "answers of the other", len(b.Wire.Texts()), 1)
	})
}
