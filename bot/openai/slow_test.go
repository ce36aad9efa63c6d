package openai

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// slowWorld is a model that says nothing to slow questions, before another one.
type slowWorld struct {
	*testing.T
	client *Client
	main   *openaitest.Server
	came   chan struct{} // a slow question
}

const slowFirst = time.Second

func newSlowWorld(t *testing.T) *slowWorld {
	t.Helper()
	w := &slowWorld{T: t, came: make(chan struct{}, 9)}
	w.main = openaitest.NewServer(t, openaitest.Func(func(r openaitest.Request) openaitest.Reply {
		if r.Last().Content == "slow" {
			w.came <- struct{}{}
			return openaitest.Hang()
		}
		return openaitest.Text("a 说")
	}))
	w.client = clientOf(t, 1, w.main, openaitest.NewServer(t, openaitest.Func(func(openaitest.Request) openaitest.Reply { return openaitest.Text("b 说") })))
	for _, m := range w.client.models {
		m.conf.FirstToken = slowFirst
	}
	pauses := w.client.models[0].breaker.pauses
	pauses.InitialInterval = time.Minute
	pauses.Reset()
	return w
}

// ask returns the model that answers a question of a conversation.
func (w *slowWorld) ask(conversation int, words string) string {
	ctx := llm.WithWaiter(context.Background(), sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", conversation)), ""))
	resp, err := w.client.Generate(ctx, ask(words))
	if err != nil {
		w.Error(err)
	}
	return resp.Model
}

// begin asks a slow question, and returns when the model has it.
func (w *slowWorld) begin(conversation int) (ended chan string) {
	ended = make(chan string, 1)
	go func() { ended <- w.ask(conversation, "slow") }()
	<-w.came
	return ended
}

func (w *slowWorld) expect(doing string, got, wanted string) {
	w.Helper()
	if got != wanted {
		w.Fatalf("%s was answered by %q, want %q", doing, got, wanted)
	}
}

// A question over which a model that answers others is silent goes to the next model, as often as its conversation asks it. The model
// stays first for all others.
func TestASlowQuestionTakesTheModelFromNoOther(t *testing.T) {
	t.Parallel()
	w := newSlowWorld(t)
	for range 2 {
		slow := w.begin(1)
		w.expect("another conversation", w.ask(2, "hello"), "a")
		w.expect("the slow question", <-slow, "b")
		w.expect("the next question", w.ask(3, "hello"), "a")
	}
}

// Slow questions of two conversations open the breaker, and so does one while no other has an answer.
func TestSilenceToSeveralConversationsOpensTheBreaker(t *testing.T) {
	t.Parallel()
	w := newSlowWorld(t)
	first, second := w.begin(1), w.begin(2)
	w.expect("another conversation", w.ask(3, "hello"), "a")
	w.expect("the first slow question", <-first, "b")
	w.expect("the second slow question", <-second, "b")
	w.expect("the next question", w.ask(3, "hello"), "b")

	w = newSlowWorld(t)
	w.expect("an answer before", w.ask(3, "hello"), "a")
	w.expect("the slow question", <-w.begin(1), "b")
	w.expect("the next question", w.ask(3, "hello"), "b")
}

// The same conversation that asks a slow question again counts once, also without an answer to others between.
func TestOneConversationIsOneSilence(t *testing.T) {
	t.Parallel()
	b := newBreaker(time.Second)
	p, _ := b.enterPass()
	b.noteLife() // another call's
	if n := p.silenceWeight("c1", 0) + p.silenceWeight("c1", 0); n != 1 {
		t.Errorf("two silences to one conversation weigh %d", n)
	}
	if n := p.silenceWeight("c2", 0); n != 1 {
		t.Errorf("the silence to a second conversation weighs %d", n)
	}
	if n := p.silenceWeight("c2", 1); n != enough {
		t.Errorf("a silence after a token of its own weighs %d", n)
	}
}

// A bound of one request does not keep the next model from a request over which the first is silent, where the caller says so.
func TestSilencePassesARequestOn(t *testing.T) {
	t.Parallel()
	w := newSlowWorld(t)
	r := ask("slow")
	r.Requests, r.Passes = 1, true
	resp, err := w.client.Generate(t.Context(), r)
	if err != nil || resp.Model != "b" {
		t.Errorf("answered by %q, %v", resp.Model, err)
	}
	w = newSlowWorld(t)
	r.Passes = false
	if resp, err := w.client.Generate(t.Context(), r); err == nil {
		t.Errorf("answered by %q beyond the bound", resp.Model)
	}
}
