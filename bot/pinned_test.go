package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/memory"
	"ebb/sessions"
)

// remember puts memories of the group on a world's shelf.
func (s *shelf) remember(facts ...memory.Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range facts {
		if m.Scope == "" {
			m.Scope, m.ScopeID = memory.ScopeGroup, memory.GroupID("robot", "c1")
		}
		m.ID, m.CreatedAt = int64(len(s.memories)+1), time.Now()
		s.memories = append(s.memories, m)
	}
}

// A session that begins knows what memory has, and the head of its requests stays as it is until a compaction, whatever
// is saved meanwhile.
func TestPinnedFromTheFirstTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		shelf.remember(
			memory.Memory{Content: "the office moves in May", SaidBy: "u-alice"},
			memory.Memory{Content: "alice leads the move", SaidBy: "u-bob", SubjectID: "u-alice", SubjectNick: "Alice"},
		)
		w := start(t, setup{shelf: shelf})
		w.say("m1", "alice", "hello")
		shelf.remember(memory.Memory{Content: "saved meanwhile"})
		w.say("m2", "bob", "hello again")
		head := func(n int) string { return w.model.requests("chat")[n].Messages[1].Content }
		if !strings.Contains(head(0), "[User Memory]\n- alice leads the move ⟦#2 said by u-bob, a claim about 说的是 u-alice「Alice」, 2000-01-01⟧\n"+
			"[Scope Memory]\n- the office moves in May ⟦#1 said by u-alice, 2000-01-01⟧\n") {
			t.Errorf("the first request begins with %q", head(0))
		}
		want(t, "the head of the second request", head(1), head(0))
		want(t, "reads of memory", w.store.called("pinned"), 1)
		want(t, "the fact is stored", strings.Contains(w.state(group).Pinned, "the office moves in May"), true)
	})
}

// A turn that pinned a fact which is forgotten before its commit is not committed, and begins again without the fact.
func TestForgottenWhileItIsPinned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		shelf.remember(memory.Memory{Content: "the safe is on floor 3"}, memory.Memory{Content: "releases are on Fridays"})
		asked := 0
		model := &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if asked++; asked == 1 {
				shelf.mu.Lock()
				shelf.memories = shelf.memories[1:]
				shelf.mu.Unlock()
			}
			return text(fmt.Sprintf("answer %d knows the safe: %t", asked, strings.Contains(r.Messages[1].Content, "floor 3"))), nil
		}}
		w := start(t, setup{shelf: shelf, model: model})
		w.say("m1", "alice", "hello")
		after(10 * time.Second) // the sweep takes the session up again
		want(t, "replies", w.wire.texts(), []string{"answer 2 knows the safe: false"})
		want(t, "the head", strings.Contains(w.state(group).Pinned, "floor 3"), false)
	})
}

// The head is read again by a renewed session, and after a deletion from it.
func TestPinnedIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		shelf.remember(memory.Memory{Content: "the first fact"})
		w := start(t, setup{shelf: shelf, config: func(c *Config) { c.Admins = []sessions.UserID{"u-alice"} }})
		w.say("m1", "alice", "hello")
		shelf.remember(memory.Memory{Content: "the second fact"})
		w.say("m2", "alice", "/new")
		w.say("m3", "alice", "hello")
		chats := w.model.requests("chat")
		if head := chats[len(chats)-1].Messages[1].Content; !strings.Contains(head, "the second fact") {
			t.Errorf("after /new a request begins with %q", head)
		}
		e := shelf.mem.Events(t.Context(), group)[0]
		if _, err := shelf.mem.Erase(t.Context(), group, []int64{e.Seq}); err != nil {
			t.Fatal(err)
		}
		shelf.mu.Lock()
		shelf.memories = shelf.memories[1:]
		shelf.mu.Unlock()
		w.say("m4", "alice", "hello")
		after(time.Minute)
		chats = w.model.requests("chat")
		if head := chats[len(chats)-1].Messages[1].Content; strings.Contains(head, "the first fact") || !strings.Contains(head, "the second fact") {
			t.Errorf("after an erasure a request begins with %q", head)
		}
	})
}

// A storage that does not answer costs the head of the view, not the answer; the next turn reads it.
func TestPinnedIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		shelf.remember(memory.Memory{Content: "a fact"})
		w := start(t, setup{shelf: shelf})
		w.store.fail(times(1, "pinned", errAway))
		w.say("m1", "alice", "hello")
		w.say("m2", "alice", "hello")
		chats := w.model.requests("chat")
		if text := written(chats[0].Messages); len(chats) != 2 || strings.Contains(text, "a fact") {
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
		shelf := newShelf()
		shelf.remember(memory.Memory{Content: "alice likes tea", SubjectID: "u-alice", SaidBy: "u-alice"})
		for i := range 60 {
			shelf.remember(memory.Memory{Content: prose(i, 20), SubjectID: "u-bob"})
		}
		w := start(t, setup{shelf: shelf, config: func(c *Config) { c.Remember.PinnedTokens = 120 }})
		w.say("m1", "alice", "hello")
		pinned := w.state(group).Pinned
		if n := counter.Count(pinned); n > 140 || !strings.HasPrefix(pinned, "[User Memory]\n- alice likes tea ⟦#1 said by u-alice, 2000-01-01⟧\n[Scope Memory]\n- ") {
			t.Errorf("%d tokens: %s", n, pinned)
		}
	})
}

// A person with a hundred facts in a group does not push other people's facts out of the head.
func TestPinnedFairShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		for i := range 60 {
			shelf.remember(memory.Memory{Content: prose(i, 8), SaidBy: "u-bob"})
		}
		shelf.remember(memory.Memory{Content: "the release is on Friday", SaidBy: "u-alice"})
		shelf.remember(memory.Memory{Content: "carol owns the login bug", SaidBy: "u-carol"})
		for i := range 60 {
			shelf.remember(memory.Memory{Content: prose(60+i, 8), SaidBy: "u-bob"})
		}
		w := start(t, setup{shelf: shelf, config: func(c *Config) { c.Remember.PinnedTokens = 300 }})
		w.say("m1", "dave", "hello")
		for _, fact := range []string{"the release is on Friday", "carol owns the login bug"} {
			if pinned := w.state(group).Pinned; !strings.Contains(pinned, fact) || !strings.Contains(pinned, prose(1, 1)) {
				t.Errorf("%q is not in the head:\n%s", fact, pinned)
			}
		}
	})
}
