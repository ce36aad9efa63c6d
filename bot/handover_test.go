package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// While a replica stops, another one answers a message in a session without a turn as soon as it is flushed. It does
// not wait long for a flush that hangs, nor for other sessions' turns. A session with a turn is answered when that has
// ended.
func TestSessionsAreHandedOverOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := func(c sessions.ConversationID, id, words string) sessions.Message {
			m := said(id, "alice", words)
			m.ConversationID = c
			return m
		}
		slow := &script{}
		slow.chat = func(ctx context.Context, r llm.Request) (llm.Response, error) {
			d := map[bool]time.Duration{true: 10 * time.Second, false: 0}[strings.Contains(lastWords(r), "slow")]
			if strings.Contains(lastWords(r), "short") {
				d = 2 * time.Second
			}
			select {
			case <-time.After(d):
				return text("re: " + lastWords(r)), nil
			case <-ctx.Done():
				return llm.Response{}, context.Cause(ctx)
			}
		}
		slow.flush = func(ctx context.Context, _ llm.Request) (llm.Response, error) { // no caller waits for its end
			<-ctx.Done()
			return llm.Response{}, context.Cause(ctx)
		}
		s := newShelf()
		a := start(t, setup{shelf: s, model: slow, name: "a"})
		b := start(t, setup{shelf: s, name: "b"})
		for _, c := range []sessions.ConversationID{"c1", "c2", "c3"} {
			a.post(in(c, "first "+string(c), "first"))
		}
		after(time.Second)
		a.post(in("c1", "m1", "slow"))
		a.post(in("c2", "m2", "short"))
		synctest.Wait()
		a.begin()
		synctest.Wait()
		b.post(in("c2", "m3", "after the short one"))
		b.post(in("c3", "m4", "at once"))
		answered := func(words string) bool {
			return slices.ContainsFunc(b.wire.texts(), func(x string) bool { return strings.HasSuffix(x, words) })
		}
		after(leaveFlush + 50*time.Millisecond)
		want(t, "answered at once", answered("at once"), true)
		after(leaveFlush + 50*time.Millisecond)
		want(t, "answered after the turn", answered("after the short one"), true)
		a.stop()
		after(time.Second)
		want(t, "answers of the one that stopped", len(a.wire.texts()), 5)
		want(t, "answers of the other", len(b.wire.texts()), 2)
		sum := a.summary()
		want(t, "summary", fmt.Sprint(sum["sessions"], sum["flushed"], sum["owed"]), "3 0 3")
		want(t, "failures counted", a.store.flushes(sessions.NewKey("robot", "c3", "")).debt.Failures, 0)
	})
}

// slowAt answers what ends in "slow" when the gate opens, and all else at once.
func slowAt(g gate) func(context.Context, llm.Request) (llm.Response, error) {
	return func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if strings.HasSuffix(lastWords(r), "slow") {
			return text("done"), g.pass(ctx)
		}
		return text("quick"), nil
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
				g := newGate()
				m := &script{chat: slowAt(g)}
				m.flush = func(ctx context.Context, _ llm.Request) (llm.Response, error) {
					if c.hang {
						<-ctx.Done()
						return llm.Response{}, context.Cause(ctx)
					}
					return saveCall("a fact"), nil
				}
				s := newShelf()
				a := start(t, setup{shelf: s, model: m, name: "a"})
				b := start(t, setup{shelf: s, name: "b"})
				a.post(said("m1", "alice", "slow"))
				<-g.in
				a.begin()
				synctest.Wait()
				a.store.fail(times(1, c.fail, errAway))
				b.post(said("m2", "bob", "quick"))
				synctest.Wait()
				g.out <- struct{}{}
				a.stop()
				sum := a.summary()
				want(t, "summary", fmt.Sprint(sum["sessions"], sum["flushed"], sum["owed"]), c.want)
				f := a.store.flushes(group)
				want(t, "owed or flushed", f.owed > 0 || f.seq > 0, true)
				after(time.Second)
				want(t, "answers of the other", len(b.wire.texts()), 1)
			})
		})
	}
}

// The flush of a session with a waiting message is part of the stop: it is awaited and counted, also when no other work
// is left.
func TestStopWaitsForTheFlushBeforeAHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		m := &script{chat: slowAt(g)}
		m.flush = func(context.Context, llm.Request) (llm.Response, error) {
			<-time.After(leaveFlush / 2)
			return saveCall("a fact"), nil
		}
		s := newShelf()
		a := start(t, setup{shelf: s, model: m, name: "a"})
		b := start(t, setup{shelf: s, name: "b"})
		a.post(said("m1", "alice", "slow"))
		<-g.in
		a.begin()
		synctest.Wait()
		b.post(said("m2", "bob", "quick"))
		synctest.Wait()
		g.out <- struct{}{}
		a.stop()
		sum := a.summary()
		want(t, "summary", fmt.Sprint(sum["sessions"], sum["flushed"], sum["saved"], sum["owed"]), "1 1 1 0")
		after(time.Second)
		want(t, "answers of the other", len(b.wire.texts()), 1)
	})
}
