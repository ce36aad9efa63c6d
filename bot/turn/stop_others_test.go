package turn_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// merged begins a turn with a question of bob and one of eve, in an order of their names. The model speaks until a turn of several
// people ends, and answers all others.
func merged(t *testing.T, s bottest.Setup, order ...string) *bottest.World {
	t.Helper()
	first := make(chan struct{})
	s.Model = &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
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
	w := bottest.Start(t, s)
	w.Say("m0", "alice", "opening")
	for i, who := range order {
		w.Say(fmt.Sprint("q", i), who, "question of "+who)
	}
	close(first)
	synctest.Wait()
	bottest.Want(t, "messages before the stop", len(w.Wire.Texts()), 1)
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
func turnsOf(w *bottest.World, who string) (n int) {
	for _, r := range w.Model.Requests("chat") {
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

func pressOf(w *bottest.World, card sessions.Event, who string) sessions.Message {
	click := bottest.Said(string(chat.StopID(card.ID, sessions.UserID("u-"+who))), who, "/stop")
	click.Press = &sessions.Press{Button: sessions.ButtonStop, Turn: card.ID}
	return click
}

func eventOf(w *bottest.World, id string) sessions.Event {
	w.T.Helper()
	for _, e := range w.Store.Mem.Events(w.T.Context(), bottest.Group) {
		if e.MsgID == sessions.MessageID(id) {
			return e
		}
	}
	w.T.Fatalf("no message %s", id)
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
	w := merged(t, bottest.Setup{Config: func(c *bot.Config) { bottest.WithRoot(c); c.Limits = limits }}, order...)
	people := sessions.Askers{Robot: "robot", Group: "c1", People: []sessions.UserID{"u-bob"}}
	before, err := w.Store.Mem.Limits.Used(t.Context(), people)
	if err != nil {
		t.Fatal(err)
	}
	button := strings.HasPrefix(way, "button")
	if button {
		click := pressOf(w, eventOf(w, "q0"), "eve")
		if way != "button" { // its row has no press, and the card's key in its id
			click.Press, click.Quiet = nil, true
			click.ID = sessions.MessageID("stop-" + chat.ReplyKey(bottest.Group, eventOf(w, "q0")) + "-0123456789abcdef01234567")
		}
		w.Post(click)
	} else {
		w.Post(bottest.Said("stop", "eve", way))
	}
	synctest.Wait()
	texts := w.Wire.Texts()[1:]
	bottest.Want(t, "answers to bob", answersTo(texts, "bob"), 1)
	bottest.Want(t, "answers to eve", answersTo(texts, "eve"), 0)
	bottest.Want(t, "requests with bob's question", turnsOf(w, "bob"), 2)
	bottest.Want(t, "mentions of bob's answer", w.Last().Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-bob", Nick: "bob"}})
	if button {
		bottest.Want(t, "messages", len(texts), 1)
	} else {
		bottest.Want(t, "messages", len(texts), 2)
		lang := wording.LanguageOf(way, "en")
		bottest.Want(t, "the receipt", texts[0], wording.Say(wording.StoppedOwn, lang, "question of eve"))
		bottest.Want(t, "mentions of the receipt", w.Wire.Sends()[1].Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-eve", Nick: "eve"}})
	}
	after, err := w.Store.Mem.Limits.Used(t.Context(), people)
	if err != nil {
		t.Fatal(err)
	}
	bottest.Want(t, "turns of bob and the group", []int{after.PersonTurns.Count, after.GroupTurns.Count}, []int{before.PersonTurns.Count, before.GroupTurns.Count})
	bottest.Want(t, "tokens of bob", after.PersonTokens.Count, 110)
	people.People = []sessions.UserID{"u-eve"}
	if after, err = w.Store.Mem.Limits.Used(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	bottest.Want(t, "tokens of eve", after.PersonTokens.Count, 1010)
	bottest.Want(t, "tokens of the session", w.State(bottest.Group).Usage, sessions.Usage{Prompt: 1200, Completion: 30})
	for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
		bottest.Want(t, "state and attempts of "+e.Content, fmt.Sprint(e.State, e.Attempts), "done0")
	}
	w.LegalLog()
	if last := w.Model.Requests("chat"); strings.Contains(fmt.Sprint(last[len(last)-1].Messages), "half") {
		t.Error("the words of the stopped turn are in the next request")
	}
}

// The others of a stopped turn are answered without new messages of the person who stopped it: no member can hold up a question by
// messages and stops without end.
func TestStopsOfOnePersonHoldUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := merged(t, bottest.Setup{}, "bob", "eve")
		w.Post(bottest.Said("again", "eve", "another question of eve"))
		w.Post(bottest.Said("stop", "eve", "/stop"))
		synctest.Wait()
		texts := w.Wire.Texts()[1:]
		bottest.Want(t, "answers to bob", answersTo(texts, "bob"), 1)
		bottest.Want(t, "requests with bob's question", turnsOf(w, "bob"), 2)
		bottest.Want(t, "answers to eve", answersTo(texts, "eve"), 1)
	})
}

// The others of a stopped turn are answered by themselves also behind an older message of a person over a limit.
func TestOthersOfAStoppedTurnBehindALimitedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := merged(t, bottest.Setup{Config: func(c *bot.Config) { c.Limits = sessions.Limits{PersonTurns: 1} }}, "alice", "bob", "eve")
		w.Post(bottest.Said("late", "carl", "question of carl"))
		w.Post(bottest.Said("stop", "bob", "/stop"))
		synctest.Wait()
		texts := w.Wire.Texts()[1:]
		bottest.Want(t, "answers to eve", answersTo(texts, "eve"), 1)
		bottest.Want(t, "answers to carl", answersTo(texts, "carl"), 1)
		for _, r := range w.Model.Requests("chat") {
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
				w := merged(t, bottest.Setup{Config: bottest.WithRoot}, "bob", "eve")
				for i, who := range stops {
					w.Post(bottest.Said(fmt.Sprint("s", i), who, "/stop"))
				}
				synctest.Wait()
				texts := w.Wire.Texts()[1:]
				bottest.Want(t, "answers", answersTo(texts, "bob")+answersTo(texts, "eve"), 0)
				for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
					bottest.Want(t, "state of "+e.Content, e.State, sessions.Done)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		speak := func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if calls++; calls == 1 {
				return bottest.Text("re: " + questionsOf(r)), nil
			}
			<-ctx.Done()
			return llm.Response{Text: "half"}, &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
		}
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Gather = time.Second }, Model: &bottest.Script{Chat: speak}})
		w.Say("m0", "alice", "opening")
		bottest.After(2 * time.Second)
		w.Post(bottest.Said("m1", "bob", "question of bob"))
		w.Post(bottest.Said("m2", "eve", "question of eve"))
		bottest.After(2 * time.Second)
		w.Say("s1", "eve", "/stop")
		bottest.Want(t, "requests after eve's stop", len(w.Model.Requests("chat")), 3)
		w.Say("s2", "bob", "/stop")
		bottest.Want(t, "the end of bob's", w.Last().Reply.Text, "half\n\n"+wording.Say(wording.TurnStopped, "en", "question of bob"))
		bottest.Want(t, "requests", len(w.Model.Requests("chat")), 3)
	})
}

// A call of a tool with an effect in a turn that one of its askers stopped is not repeated for the others.
func TestStopRepeatsNoCallForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		acts := 0
		act := bottest.HandTool{Name: "act", F: func(context.Context, chat.ToolInput) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			acts++
			return fmt.Sprint("done ", acts), nil
		}}
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Tools, c.Gather = []chat.Tool{act}, time.Second }, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			last := r.Messages[len(r.Messages)-1]
			switch {
			case last.Role != "tool":
				return bottest.Calls(bottest.Call("c1", "act", `{"n":1}`)), nil
			case strings.Contains(fmt.Sprint(r.Messages), "stop"):
				return bottest.Text("seen " + last.Content), nil
			}
			<-ctx.Done()
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
		}}})
		w.Post(bottest.Said("m1", "eve", "question of eve"))
		w.Post(bottest.Said("m2", "bob", "question of bob"))
		bottest.After(2 * time.Second)
		w.Say("s1", "eve", "停")
		bottest.Want(t, "the answer to bob", w.Last().Reply.Text, "seen done 1")
		bottest.Want(t, "runs of the tool", acts, 1)
		bottest.Want(t, "people whose facts wait with them", w.Store.Passed, []sessions.UserID{"u-bob"})
		w.LegalLog()
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
	a := merged(t, bottest.Setup{}, order...)
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
			a.Wire.Mu.Lock()
			a.Wire.Deliver = func(context.Context, sessions.Outgoing) (chat.Sent, error) { return chat.Sent{}, bottest.ErrAway }
			a.Wire.Mu.Unlock()
		}
		return bottest.ErrAway
	}
	if late {
		a.Store.Lose(dies)
	} else {
		a.Store.Fail(dies)
	}
	arrives := a.Store.Mem
	if _, err := arrives.Inbox.Accept(t.Context(), "b", bottest.Group, bottest.Said("stop", "eve", "/stop")); err != nil {
		t.Fatal(err)
	}
	bottest.After(6 * time.Second)
	seen := len(a.Wire.Sends())
	mu.Lock()
	dead := calls >= n
	mu.Unlock()
	a.Kill()
	b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
	bottest.After(time.Minute)
	texts := slices.Concat(a.Wire.Texts()[1:seen], b.Wire.Texts())
	if answersTo(texts, "bob") == 0 || answersTo(texts, "eve") > 0 {
		t.Errorf("call %d, late %t, %v: people read %q", n, late, order, texts)
	}
	var log []string
	for _, e := range b.Store.EventsOf(t.Context(), bottest.Group) {
		log = append(log, e.Content)
	}
	if answersTo(log, "bob") != 1 || answersTo(log, "eve") > 0 {
		t.Errorf("call %d, late %t, %v: the log has %q", n, late, order, log)
	}
	for _, e := range b.Store.Mem.Events(t.Context(), bottest.Group) {
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
		a := merged(t, bottest.Setup{}, "bob", "eve")
		var mu sync.Mutex
		dead := false
		a.Store.Fail(func(op string) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case dead:
				return bottest.ErrAway
			case op == "commit":
				dead = true
				if _, err := a.Store.Mem.Inbox.Accept(t.Context(), "b", bottest.Group, bottest.Said("s2", "eve", "/stop")); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		a.Post(bottest.Said("s1", "bob", "/stop"))
		bottest.After(6 * time.Second)
		a.Kill()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(time.Minute)
		bottest.Want(t, "answers to eve", answersTo(b.Wire.Texts(), "eve"), 0)
		bottest.Want(t, "requests with eve's question", turnsOf(b, "eve"), 0)
		for _, e := range b.Store.Mem.Events(t.Context(), bottest.Group) {
			bottest.Want(t, "state of "+e.Content, e.State, sessions.Done)
		}
	})
}
