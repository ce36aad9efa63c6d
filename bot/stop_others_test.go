package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/sessions"
)

// merged begins a turn with a question of bob and one of eve, in an order of their names. The model speaks until a turn of several
// people ends, and answers all others.
func merged(t *testing.T, s setup, order ...string) *world {
	t.Helper()
	first := make(chan struct{})
	s.model = &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
		words := questionsOf(r)
		switch {
		case strings.Contains(words, "opening"):
			<-first
		case strings.Contains(words, "of bob") && strings.Contains(words, "of eve"):
			<-ctx.Done()
			err := &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
			part := llm.Part{Model: "fake", Requests: 1, Err: err}
			return llm.Response{Text: "half", Usage: sessions.Usage{Prompt: 1000, Completion: 10}, Parts: []llm.Part{part}}, err
		}
		return llm.Response{Text: "re: " + words, Finish: llm.FinishStop, Model: "fake", Usage: sessions.Usage{Prompt: 100, Completion: 10}}, nil
	}}
	w := start(t, s)
	w.say("m0", "alice", "opening")
	for i, who := range order {
		w.say(fmt.Sprint("q", i), who, "question of "+who)
	}
	close(first)
	synctest.Wait()
	want(t, "messages before the stop", len(w.wire.texts()), 1)
	return w
}

// questionsOf are the people's words behind the last answer.
func questionsOf(r llm.Request) string {
	var words []string
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != "user" {
			break
		}
		words = append(words, m.Content)
	}
	return strings.Join(words, " ")
}

// turnsOf lists the requests with a person's question behind the last answer.
func turnsOf(w *world, who string) (n int) {
	for _, r := range w.model.requests("chat") {
		if strings.Contains(questionsOf(r), "of "+who) {
			n++
		}
	}
	return n
}

// answersTo counts the messages that answer a person's question.
func answersTo(texts []string, who string) (n int) {
	for _, text := range texts {
		for part := range strings.SplitSeq(text, "\n\n---\n\n") { // replies of several turns in one message
			if strings.HasPrefix(part, "re: ") && strings.Contains(part, "of "+who) {
				n++
			}
		}
	}
	return n
}

func pressOf(w *world, card sessions.Event, who string) sessions.Message {
	click := said(string(chat.StopID(card.ID, sessions.UserID("u-"+who))), who, "/stop")
	click.Quiet = true
	return click
}

func eventOf(w *world, id string) sessions.Event {
	w.t.Helper()
	for _, e := range w.store.mem.Events(w.t.Context(), group) {
		if e.MsgID == sessions.MessageID(id) {
			return e
		}
	}
	w.t.Fatalf("no message %s", id)
	return sessions.Event{}
}

// One of several askers ends their own messages: the others are answered at once, under the same admission, and by no other words than
// their own. The tokens of the stopped attempt are the stopper's.
func TestStopByOneOfSeveralAskers(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"bob first": {"bob", "eve"}, "eve first": {"eve", "bob"}, "eve twice": {"eve", "bob", "eve"}} {
		for _, way := range []string{"/stop", "停", "button", "button of the release before"} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testStopByOne(t, order, way) })
			})
		}
	}
}

func testStopByOne(t *testing.T, order []string, way string) {
	t.Helper()
	limits := sessions.Limits{PersonTurns: 100, GroupTurns: 100, PersonTokens: 100000}
	w := merged(t, setup{config: func(c *Config) { rooted(c); c.Limits = limits }}, order...)
	people := sessions.Askers{Robot: "robot", Group: "c1", People: []sessions.UserID{"u-bob"}}
	before, err := w.store.mem.Used(t.Context(), people)
	if err != nil {
		t.Fatal(err)
	}
	button := strings.HasPrefix(way, "button")
	if button {
		click := pressOf(w, eventOf(w, "q0"), "eve")
		if way != "button" {
			click.ID = sessions.MessageID("stop-" + chat.ReplyKey(group, eventOf(w, "q0")) + "-0123456789abcdef01234567")
		}
		w.post(click)
	} else {
		w.post(said("stop", "eve", way))
	}
	synctest.Wait()
	texts := w.wire.texts()[1:]
	want(t, "answers to bob", answersTo(texts, "bob"), 1)
	want(t, "answers to eve", answersTo(texts, "eve"), 0)
	want(t, "requests with bob's question", turnsOf(w, "bob"), 2)
	want(t, "mentions of bob's answer", w.last().Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-bob", Nick: "bob"}})
	if button {
		want(t, "messages", len(texts), 1)
	} else {
		want(t, "messages", len(texts), 2)
		lang := wording.LanguageOf(way, "en")
		want(t, "the receipt", texts[0], wording.Say(wording.StoppedOwn, lang, "question of eve"))
		want(t, "mentions of the receipt", w.wire.sends()[1].Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-eve", Nick: "eve"}})
	}
	after, err := w.store.mem.Used(t.Context(), people)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "turns of bob and the group", []int{after.PersonTurns.Count, after.GroupTurns.Count}, []int{before.PersonTurns.Count, before.GroupTurns.Count})
	want(t, "tokens of bob", after.PersonTokens.Count, 110)
	people.People = []sessions.UserID{"u-eve"}
	if after, err = w.store.mem.Used(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	want(t, "tokens of eve", after.PersonTokens.Count, 1010)
	want(t, "tokens of the session", w.state(group).Usage, sessions.Usage{Prompt: 1200, Completion: 30})
	for _, e := range w.store.mem.Events(t.Context(), group) {
		want(t, "state and attempts of "+e.Content, fmt.Sprint(e.State, e.Attempts), "done0")
	}
	w.legalLog()
	if last := w.model.requests("chat"); strings.Contains(fmt.Sprint(last[len(last)-1].Messages), "half") {
		t.Error("the words of the stopped turn are in the next request")
	}
}

// The others of a stopped turn are answered without new messages of the person who stopped it: no member can hold up a question by
// messages and stops without end.
func TestStopsOfOnePersonHoldUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := merged(t, setup{}, "bob", "eve")
		w.post(said("again", "eve", "another question of eve"))
		w.post(said("stop", "eve", "/stop"))
		synctest.Wait()
		texts := w.wire.texts()[1:]
		want(t, "answers to bob", answersTo(texts, "bob"), 1)
		want(t, "requests with bob's question", turnsOf(w, "bob"), 2)
		want(t, "answers to eve", answersTo(texts, "eve"), 1)
	})
}

// The others of a stopped turn are answered by themselves also behind an older message of a person over a limit.
func TestOthersOfAStoppedTurnBehindALimitedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := merged(t, setup{config: func(c *Config) { c.Limits = sessions.Limits{PersonTurns: 1} }}, "alice", "bob", "eve")
		w.post(said("late", "carl", "question of carl"))
		w.post(said("stop", "bob", "/stop"))
		synctest.Wait()
		texts := w.wire.texts()[1:]
		want(t, "answers to eve", answersTo(texts, "eve"), 1)
		want(t, "answers to carl", answersTo(texts, "carl"), 1)
		for _, r := range w.model.requests("chat") {
			if words := questionsOf(r); strings.Contains(words, "of eve") && strings.Contains(words, "of carl") {
				t.Errorf("eve's question was asked again with a new message: %s", words)
			}
		}
	})
}

// An administrator ends the whole turn, and so do all askers together. Each asker can end the rest of a turn.
func TestStopsOfAWholeTurn(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string][]string{"administrator": {"root"}, "both": {"eve", "bob"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := merged(t, setup{config: rooted}, "bob", "eve")
				for i, who := range stops {
					w.post(said(fmt.Sprint("s", i), who, "/stop"))
				}
				synctest.Wait()
				texts := w.wire.texts()[1:]
				want(t, "answers", answersTo(texts, "bob")+answersTo(texts, "eve"), 0)
				for _, e := range w.store.mem.Events(t.Context(), group) {
					want(t, "state of "+e.Content, e.State, sessions.Done)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		speak := func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if calls++; calls == 1 {
				return text("re: " + questionsOf(r)), nil
			}
			<-ctx.Done()
			return llm.Response{Text: "half"}, &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
		}
		w := start(t, setup{config: func(c *Config) { c.Gather = time.Second }, model: &script{chat: speak}})
		w.say("m0", "alice", "opening")
		after(2 * time.Second)
		w.post(said("m1", "bob", "question of bob"))
		w.post(said("m2", "eve", "question of eve"))
		after(2 * time.Second)
		w.say("s1", "eve", "/stop")
		want(t, "requests after eve's stop", len(w.model.requests("chat")), 3)
		w.say("s2", "bob", "/stop")
		want(t, "the end of bob's", w.last().Reply.Text, "half\n\n"+wording.Say(wording.TurnStopped, "en", "question of bob"))
		want(t, "requests", len(w.model.requests("chat")), 3)
	})
}

// A call of a tool with an effect in a turn that one of its askers stopped is not repeated for the others.
func TestStopRepeatsNoCallForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		acts := 0
		act := handTool{name: "act", f: func(context.Context, chat.ToolInput) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			acts++
			return fmt.Sprint("done ", acts), nil
		}}
		w := start(t, setup{config: func(c *Config) { c.Tools, c.Gather = []chat.Tool{act}, time.Second }, model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			last := r.Messages[len(r.Messages)-1]
			switch {
			case last.Role != "tool":
				return calls(call("c1", "act", `{"n":1}`)), nil
			case strings.Contains(fmt.Sprint(r.Messages), "stop"):
				return text("seen " + last.Content), nil
			}
			<-ctx.Done()
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
		}}})
		w.post(said("m1", "eve", "question of eve"))
		w.post(said("m2", "bob", "question of bob"))
		after(2 * time.Second)
		w.say("s1", "eve", "停")
		want(t, "the answer to bob", w.last().Reply.Text, "seen done 1")
		want(t, "runs of the tool", acts, 1)
		want(t, "people whose facts wait with them", w.store.passed, []sessions.UserID{"u-bob"})
		w.legalLog()
	})
}

// A process dies at each step after a stop by one of several askers: the others are answered once, and she is not.
func TestStopByOneOfSeveralSurvivesAKill(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"bob", "eve"}, {"eve", "bob"}} {
		for _, late := range []bool{false, true} {
			for n := 1; ; n++ {
				ended := false
				synctest.Test(t, func(t *testing.T) { ended = testStopAndKill(t, n, late, order) })
				if ended || t.Failed() {
					break
				}
			}
		}
	}
}

// testStopAndKill kills a process at the n-th call of the storage after the stop, or when its answer is lost. It reports whether the
// process came to its end before.
func testStopAndKill(t *testing.T, n int, late bool, order []string) (ended bool) {
	t.Helper()
	a := merged(t, setup{}, order...)
	var mu sync.Mutex
	calls := 0
	dies := func(op string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "beat" && calls < n {
			return nil
		}
		if calls++; calls < n {
			return nil
		}
		if calls == n {
			a.wire.mu.Lock()
			a.wire.send = func(context.Context, sessions.Outgoing) (chat.Sent, error) { return chat.Sent{}, errAway }
			a.wire.mu.Unlock()
		}
		return errAway
	}
	if late {
		a.store.lose(dies)
	} else {
		a.store.fail(dies)
	}
	arrives := a.store.mem
	if _, err := arrives.Accept(t.Context(), "b", group, said("stop", "eve", "/stop")); err != nil {
		t.Fatal(err)
	}
	after(6 * time.Second)
	seen := len(a.wire.sends())
	mu.Lock()
	dead := calls >= n
	mu.Unlock()
	a.kill()
	b := start(t, setup{name: "b", shelf: a.store.shelf})
	after(time.Minute)
	texts := slices.Concat(a.wire.texts()[1:seen], b.wire.texts())
	if answersTo(texts, "bob") == 0 || answersTo(texts, "eve") > 0 {
		t.Errorf("call %d, late %t, %v: people read %q", n, late, order, texts)
	}
	var log []string
	for _, e := range b.store.log(t.Context(), group) {
		log = append(log, e.Content)
	}
	if answersTo(log, "bob") != 1 || answersTo(log, "eve") > 0 {
		t.Errorf("call %d, late %t, %v: the log has %q", n, late, order, log)
	}
	for _, e := range b.store.mem.Events(t.Context(), group) {
		if e.State != sessions.Done {
			t.Errorf("call %d, late %t: %q is %s", n, late, e.Content, e.State)
		}
	}
	return !dead
}

// Another asker stops the turn just before the commit of the first stop, and the process dies behind it. No question is asked again.
func TestStopsOfAllAskersBesideACommitAndAKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := merged(t, setup{}, "bob", "eve")
		var mu sync.Mutex
		dead := false
		a.store.fail(func(op string) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case dead:
				return errAway
			case op == "commit":
				dead = true
				if _, err := a.store.mem.Accept(t.Context(), "b", group, said("s2", "eve", "/stop")); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		a.post(said("s1", "bob", "/stop"))
		after(6 * time.Second)
		a.kill()
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(time.Minute)
		want(t, "answers to eve", answersTo(b.wire.texts(), "eve"), 0)
		want(t, "requests with eve's question", turnsOf(b, "eve"), 0)
		for _, e := range b.store.mem.Events(t.Context(), group) {
			want(t, "state of "+e.Content, e.State, sessions.Done)
		}
	})
}
