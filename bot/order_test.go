package bot

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/sessions"
)

// partsOf lists the parts of a request in the order in which their texts stand there.
func partsOf(msgs []llm.Message, texts map[view.Piece]string) (found view.Order) {
	text := written(msgs)
	for p, want := range texts {
		if strings.Count(text, want) == 1 {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(x, y view.Piece) int { return strings.Index(text, texts[x]) - strings.Index(text, texts[y]) })
	return found
}

// For any order the request holds each part once, in that order, between the system prompt and the question.
func TestPartsStandInTheirOrder(t *testing.T) {
	t.Parallel()
	texts := map[view.Piece]string{view.PiecePinned: "张伟负责发布", view.PieceSummaries: "周五发布。", view.PieceRaw: "现在几号？", view.PieceRecall: "found: Heron"}
	rapid.Check(t, func(t *rapid.T) {
		f := *testFrame
		f.Order = rapid.Permutation(view.DefaultOrder()).Draw(t, "order")
		if err := f.Order.Check(); err != nil {
			t.Fatal(err)
		}
		v, wanted := aView(), slices.Clone(f.Order)
		leave := func(p view.Piece, empty func()) {
			if rapid.Bool().Draw(t, "without "+string(p)) {
				empty()
				wanted = slices.DeleteFunc(wanted, func(q view.Piece) bool { return p == q })
			}
		}
		recalled := texts[view.PieceRecall]
		leave(view.PiecePinned, func() { v.Session.Pinned = "" })
		leave(view.PieceSummaries, func() { v.Summaries = nil })
		leave(view.PieceRaw, func() { v.Tail = nil })
		leave(view.PieceRecall, func() { recalled = "" })
		msgs := f.Assemble(v, aPolicy, recalled, []sessions.Event{user(11, "bob", "the question")})
		if why := illegal(msgs); why != "" {
			t.Fatalf("%s:\n%s", why, written(msgs))
		}
		if got := partsOf(msgs, texts); !slices.Equal(got, wanted) {
			t.Fatalf("got %v, want %v:\n%s", got, wanted, written(msgs))
		}
		if last := msgs[len(msgs)-1]; last.Role != "user" || last.Content != "bob(id-bob): the question" {
			t.Fatalf("the request ends with %+v", last)
		}
	})
}

// The order of the configuration is the one of the request that the model gets, also after the results of tools.
func TestOrderOfTheConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		order := view.Order{view.PieceRecall, view.PieceRaw, view.PiecePinned, view.PieceSummaries}
		model := &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if last := r.Messages[len(r.Messages)-1]; last.Role == "user" && strings.Contains(last.Content, "还记得") {
				return calls(call("c1", "look", `{}`)), nil
			}
			return text("all right"), nil
		}}
		var looks atomic.Int32
		shelf := newShelf()
		shelf.remember(memory.Memory{Content: "releases are on Fridays"})
		w := start(t, setup{shelf: shelf, model: model, config: func(c *Config) {
			recalling(c)
			c.Remember.PinnedTokens, c.Remember.Order = 600, order
			c.Tools = []chat.Tool{countedTool("look", true, &looks)}
		}})
		w.say("m1", "alice", "good morning")
		w.found(memory.Hit{Path: "memory/group/1999-12-01.md#7", MemoryID: 7, Content: "the code name is Heron"})
		w.say("m2", "alice", "还记得我们上次定的发布代号吗？")
		requests := w.model.requests("chat")
		texts := map[view.Piece]string{view.PiecePinned: "releases are on Fridays", view.PieceRaw: "good morning", view.PieceRecall: "the code name is Heron"}
		for _, r := range requests[1:3] {
			if got, want := partsOf(r.Messages, texts), order[:3]; !slices.Equal(got, want) {
				t.Errorf("got %v, want %v:\n%s", got, want, written(r.Messages))
			}
		}
	})
}
