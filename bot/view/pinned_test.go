package view_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// A session that begins knows what memory has, and the head of its requests stays as it is until a compaction, whatever
// is saved meanwhile.
func TestPinnedFromTheFirstTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		shelf.Remember(
			memory.Memory{Content: "the office moves in May", SaidBy: "u-alice"},
			memory.Memory{Content: "alice leads the move", SaidBy: "u-bob", SubjectID: "u-alice", SubjectNick: "Alice"},
		)
		w := bottest.Start(t, bottest.Setup{Shelf: shelf})
		w.Say("m1", "alice", "hello")
		shelf.Remember(memory.Memory{Content: "saved meanwhile"})
		w.Say("m2", "bob", "hello again")
		head := func(n int) string { return w.Model.Requests("chat")[n].Messages[1].Content }
		if !strings.Contains(head(0), "[User Memory]\n- alice leads the move ⟦#2 said by u-bob, a claim about 说的是 u-alice「Alice」, 2000-01-01⟧\n"+
			"[Scope Memory]\n- the office moves in May ⟦#1 said by u-alice, 2000-01-01⟧\n") {
			t.Errorf("the first request begins with %q", head(0))
		}
		bottest.Want(t, "the head of the second request", head(1), head(0))
		bottest.Want(t, "reads of memory", w.Store.Called("pinned"), 1)
		bottest.Want(t, "the fact is stored", strings.Contains(w.State(bottest.Group).Pinned, "the office moves in May"), true)
	})
}

// A turn that pinned a fact which is forgotten before its commit is not committed, and begins again without the fact.
func TestForgottenWhileItIsPinned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		shelf.Remember(memory.Memory{Content: "the safe is on floor 3"}, memory.Memory{Content: "releases are on Fridays"})
		asked := 0
		model := &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if asked++; asked == 1 {
				shelf.Mu.Lock()
				shelf.Memories = shelf.Memories[1:]
				shelf.Mu.Unlock()
			}
			return bottest.Text(fmt.Sprintf("answer %d knows the safe: %t", asked, strings.Contains(r.Messages[1].Content, "floor 3"))), nil
		}}
		w := bottest.Start(t, bottest.Setup{Shelf: shelf, Model: model})
		w.Say("m1", "alice", "hello")
		bottest.After(10 * time.Second) // the sweep takes the session up again
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"answer 2 knows the safe: false"})
		bottest.Want(t, "the head", strings.Contains(w.State(bottest.Group).Pinned, "floor 3"), false)
	})
}

// The head is read again by a renewed session, and after a deletion from it.
func TestPinnedIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		shelf.Remember(memory.Memory{Content: "the first fact"})
		w := bottest.Start(t, bottest.Setup{Shelf: shelf, Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-alice"} }})
		w.Say("m1", "alice", "hello")
		shelf.Remember(memory.Memory{Content: "the second fact"})
		w.Say("m2", "alice", "/new")
		w.Say("m3", "alice", "hello")
		chats := w.Model.Requests("chat")
		if head := chats[len(chats)-1].Messages[1].Content; !strings.Contains(head, "the second fact") {
			t.Errorf("after /new a request begins with %q", head)
		}
		e := shelf.Mem.Events(t.Context(), bottest.Group)[0]
		if _, err := shelf.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{e.Seq}); err != nil {
			t.Fatal(err)
		}
		shelf.Mu.Lock()
		shelf.Memories = shelf.Memories[1:]
		shelf.Mu.Unlock()
		w.Say("m4", "alice", "hello")
		bottest.After(time.Minute)
		chats = w.Model.Requests("chat")
		if head := chats[len(chats)-1].Messages[1].Content; strings.Contains(head, "the first fact") || !strings.Contains(head, "the second fact") {
			t.Errorf("after an erasure a request begins with %q", head)
		}
	})
}

// A storage that does not answer costs the head of the view, not the answer; the next turn reads it.
func TestPinnedIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		shelf.Remember(memory.Memory{Content: "a fact"})
		w := bottest.Start(t, bottest.Setup{Shelf: shelf})
		w.Store.Fail(bottest.Times(1, "pinned", bottest.ErrAway))
		w.Say("m1", "alice", "hello")
		w.Say("m2", "alice", "hello")
		chats := w.Model.Requests("chat")
		if text := bottest.Transcript(chats[0].Messages); len(chats) != 2 || strings.Contains(text, "a fact") {
			t.Fatalf("%d requests, the first %s", len(chats), text)
		}
		if head := chats[1].Messages[1].Content; !strings.Contains(head, "a fact") {
			t.Errorf("the second request begins with %q", head)
		}
	})
}

// The head has a fixed number of tokens, however large memory is: the people who talk come first, then the group, then
// the rest.
func TestPinnedBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		shelf.Remember(memory.Memory{Content: "alice likes tea", SubjectID: "u-alice", SaidBy: "u-alice"})
		for i := range 60 {
			shelf.Remember(memory.Memory{Content: bottest.Prose(i, 20), SubjectID: "u-bob"})
		}
		w := bottest.Start(t, bottest.Setup{Shelf: shelf, Config: func(c *bot.Config) { c.Remember.PinnedTokens = 120 }})
		w.Say("m1", "alice", "hello")
		pinned := w.State(bottest.Group).Pinned
		if n := bottest.Counter.Count(pinned); n > 140 || !strings.HasPrefix(pinned, "[User Memory]\n- alice likes tea ⟦#1 said by u-alice, 2000-01-01⟧\n[Scope Memory]\n- ") {
			t.Errorf("%d tokens: %s", n, pinned)
		}
	})
}

// A person with a hundred facts in a group does not push other people's facts out of the head.
func TestPinnedFairShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		for i := range 60 {
			shelf.Remember(memory.Memory{Content: bottest.Prose(i, 8), SaidBy: "u-bob"})
		}
		shelf.Remember(memory.Memory{Content: "the release is on Friday", SaidBy: "u-alice"})
		shelf.Remember(memory.Memory{Content: "carol owns the login bug", SaidBy: "u-carol"})
		for i := range 60 {
			shelf.Remember(memory.Memory{Content: bottest.Prose(60+i, 8), SaidBy: "u-bob"})
		}
		w := bottest.Start(t, bottest.Setup{Shelf: shelf, Config: func(c *bot.Config) { c.Remember.PinnedTokens = 300 }})
		w.Say("m1", "dave", "hello")
		for _, fact := range []string{"the release is on Friday", "carol owns the login bug"} {
			if pinned := w.State(bottest.Group).Pinned; !strings.Contains(pinned, fact) || !strings.Contains(pinned, bottest.Prose(1, 1)) {
				t.Errorf("%q is not in the head:\n%s", fact, pinned)
			}
		}
	})
}
