package bot

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/turn/answer"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

// halfway has the model speak of each question that holds a word until its call ends, and answer all others.
func halfway(word, said string) func(context.Context, llm.Request) (llm.Response, error) {
	return func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if !strings.Contains(lastWords(r), word) {
			return text("re: " + lastWords(r)), nil
		}
		<-ctx.Done()
		err := &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
		return llm.Response{Text: said, Parts: []llm.Part{{Model: "fake", Requests: 1, Err: err}}}, err
	}
}

// rooted has the administrator root.
func rooted(c *Config) { c.Admins = []sessions.UserID{"u-root"} }

// last is the newest message that was sent.
func (w *world) last() sessions.Outgoing {
	w.t.Helper()
	sent := w.wire.sends()
	if len(sent) == 0 {
		w.t.Fatal("nothing was sent")
	}
	return sent[len(sent)-1]
}

// The asker and an administrator stop a turn: its words so far are the answer, in one message with that to the command. It names the
// messages that wait, and those are answered next. Several commands at once stop one turn.
func TestStop(t *testing.T) {
	t.Parallel()
	for who, commands := range map[string][]string{"alice": {"/stop"}, "root": {"/stop", "/stop"}} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				speak, written := halfway("slow", " It began when "), make(chan struct{})
				model := func(ctx context.Context, r llm.Request) (llm.Response, error) {
					resp, err := speak(ctx, r)
					<-written // all commands are stored before the turn ends
					return resp, err
				}
				w := start(t, setup{model: &script{chat: model}, config: func(c *Config) {
					rooted(c)
					c.Models = []llm.Listed{{Name: "fake", Price: llm.Price{In: 2, Out: 6}}}
				}})
				w.say("m1", "alice", "tell a slow story")
				w.say("m2", "bob", "What of the backup?\nIt is late again.")
				for i, words := range commands {
					w.post(said(fmt.Sprint("s", i), who, words))
				}
				close(written)
				synctest.Wait()
				texts := w.wire.texts()
				want(t, "messages", len(texts), 2)
				want(t, "the stopped answer", texts[0], "It began when\n\n"+wording.Say(wording.TurnStopped, "en", "tell a slow story")+
					wording.Say(wording.StillWaiting, "en", 1, `bob “What of the backup? It is late…”`))
				mentions := []sessions.Mention{{StaffID: "u-alice", Nick: "alice"}}
				if who != "alice" {
					mentions = append(mentions, sessions.Mention{StaffID: sessions.UserID("u-" + who), Nick: who})
				}
				want(t, "its mentions", w.wire.sends()[0].Reply.Target.Mentions, mentions)
				if !strings.Contains(texts[1], "backup") {
					t.Errorf("the waiting message has the answer %q", texts[1])
				}
				s := w.state(group)
				spent, err := w.store.mem.Spent(t.Context(), group, time.Now())
				if err != nil || len(spent) != 1 || s.Usage.Prompt == 0 || s.Usage.Completion == 0 {
					t.Fatalf("the stopped call is counted as %+v, %+v, %v", s.Usage, spent, err)
				}
				want(t, "its cost", spent[0].Cost, llm.Price{In: 2, Out: 6}.Cost(s.Usage))
				for _, e := range w.view().Tail {
					want(t, "attempts at "+e.Content, e.Attempts, 0)
				}
				want(t, "the log's lines of failed calls", len(w.log.lines(t, "Model gave no answer")), 0)
			})
		})
	}
}

// While a turn runs, its asker may stop it by the bare word. At other times the word is a message like any other.
func TestBareWordStopsARunningTurn(t *testing.T) {
	t.Parallel()
	for word, lang := range map[string]string{"停止。": "zh", "停": "zh", "Stop!": "en"} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, setup{config: rooted, model: &script{chat: halfway("slow", "half")}})
			w.say("m1", "alice", "a slow story")
			w.say("m2", "bob", word) // neither the asker nor an administrator
			want(t, "messages after another member's word", len(w.wire.texts()), 0)
			w.say("m3", "alice", word)
			texts := w.wire.texts()
			want(t, "the answer to the word", texts[0], "half\n\n"+wording.Say(wording.TurnStopped, lang, "a slow story")+
				wording.Say(wording.StillWaiting, lang, 1, "bob “"+word+"”"))
			want(t, "the answer to another member's word", texts[1], "re: bob(u-bob): "+word)
			if seen := w.model.requests("chat")[1]; strings.Contains(fmt.Sprint(seen.Messages), "alice(u-alice): "+word) {
				t.Errorf("the model reads the word that stopped it: %v", seen.Messages)
			}
			w.say("m4", "alice", word)
			want(t, "the answer without a turn", w.wire.texts()[2], "re: alice(u-alice): "+word)
		})
	}
}

// A bare word without a turn before it is a message like any other. It does not stop the turn that answers it.
func TestBareWordDoesNotStopItsOwnTurn(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{"alone": {"停止"}, "before a question": {"停", "and then?"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hold := make(chan struct{})
				w := start(t, setup{config: func(c *Config) { c.Gather = time.Second }, model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
					select {
					case <-hold:
						return text("the whole answer"), nil
					case <-ctx.Done():
						return llm.Response{}, &llm.CallError{Err: context.Cause(ctx)}
					}
				}}})
				for i, word := range words {
					w.post(said(fmt.Sprint("m", i), "alice", word))
				}
				after(2 * time.Second)
				before := w.store.called("pending")
				w.post(said("later", "bob", "another question"))
				after(time.Minute)
				if w.store.called("pending") < before+2 {
					t.Fatal("the turn did not look for a stop")
				}
				close(hold)
				synctest.Wait()
				want(t, "answers", w.wire.texts(), []string{"the whole answer", "the whole answer"})
			})
		})
	}
}

// A waiting /stop of a member without a right is not among the messages that still wait for an answer.
func TestStopNamesNoOtherStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: rooted, model: &script{chat: halfway("slow", "half")}})
		w.say("m1", "alice", "a slow story")
		w.say("m2", "bob", "/stop")
		w.say("m3", "root", "/stop")
		want(t, "the answer", w.wire.texts()[0], "half\n\n"+wording.Say(wording.TurnStopped, "en", "a slow story"))
	})
}

// Names and words of people make neither links nor emphasis in the command's answer.
func TestStopNamesWaitingMessagesLiterally(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: halfway("slow", "half")}})
		w.say("m1", "alice", "a slow `x`")
		m := said("m2", "bob", "see [this](http://a.example) *now*")
		m.SenderNick = "[bob](http://b.example)\n# **chief**"
		w.post(m)
		w.say("m3", "alice", "/stop")
		want(t, "the answer", w.wire.texts()[0], "half\n\n"+wording.Say(wording.TurnStopped, "en", "a slow ｀x｀")+
			wording.Say(wording.StillWaiting, "en", 1, "bob http //b.example ＃ ＊＊chief＊＊ “see ［this］(http://a.example) ＊…”"))
	})
}

// A member without a right changes nothing, and reads so when the turn is over. Without a turn there is nothing to stop.
func TestStopRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		w := start(t, setup{config: rooted, model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			select {
			case <-hold:
				return text("the whole story"), nil
			case <-ctx.Done():
				return llm.Response{}, &llm.CallError{Err: context.Cause(ctx)}
			}
		}}})
		w.say("m1", "alice", "tell a story")
		w.say("m2", "bob", "/stop")
		w.say("m3", "alice", "/stop now") // a wrong argument stops nothing
		after(time.Minute)
		want(t, "messages so far", len(w.wire.texts()), 0)
		close(hold)
		synctest.Wait()
		texts := w.wire.texts()
		want(t, "the answer", texts[0], "the whole story")
		want(t, "the stranger's answer", texts[1], wording.Say(wording.NotYourTurn, "en"))
		want(t, "the wrong command's answer", strings.HasPrefix(texts[2], "Usage: "), true)
		for i, who := range []string{"bob", "alice", "root"} {
			w.say(fmt.Sprint("n", i), who, "/stop")
			want(t, who+" without a turn", w.last().Reply.Text, wording.Say(wording.NothingRuns, "en"))
		}
	})
}

// A button's command stops a turn without words of its own; a written one next to it has its answer.
func TestStopByAButton(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, setup{model: &script{chat: halfway("slow", "half")}})
			w.say("m1", "alice", "a slow question")
			click := said(string(chat.StopID(w.store.mem.Events(t.Context(), group)[0].ID, "u-alice")), "alice", "/stop")
			click.Quiet = true
			w.post(click)
			expected := []string{"half\n\n" + wording.Say(wording.CutShort, "en")}
			if written {
				w.post(said("m2", "alice", "/stop"))
				expected = []string{"half\n\n" + wording.Say(wording.TurnStopped, "en", "a slow question")}
			}
			synctest.Wait()
			want(t, "answers", strings.Join(w.wire.texts(), "|"), strings.Join(expected, "|"))
			w.say("m3", "alice", "next")
			want(t, "the next answer", w.last().Reply.Text, "re: "+lastWords(w.model.requests("chat")[1]))
		})
	}
}

// The configuration may reserve the command for administrators.
func TestStopReserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: halfway("slow", "half")}, config: func(c *Config) {
			rooted(c)
			c.CommandRights = map[string]string{"stop": "admin"}
		}})
		w.say("m1", "alice", "a slow question")
		w.say("m2", "alice", "/stop")
		want(t, "answers before", len(w.wire.texts()), 0)
		w.say("m3", "root", "/stop")
		want(t, "answers", strings.Join(w.wire.texts(), "|"), strings.Join([]string{
			"half\n\n" + wording.Say(wording.TurnStopped, "en", "a slow question"),
			wording.Say(wording.NotAdmin, "en"),
		}, "|"))
	})
}

// A stop that waits when its turn begins stops it before the model is asked, and so does one whose wake-up was lost.
func TestStopWithoutItsWakeUp(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { testStopWithoutItsWakeUp(t, alone) })
	}
}

func testStopWithoutItsWakeUp(t *testing.T, alone bool) {
	t.Helper()
	w := start(t, setup{model: &script{chat: halfway("slow", "")}, config: func(c *Config) { c.Gather, c.AloneEach = time.Second, alone }})
	w.post(said("m1", "alice", "a slow question"))
	w.post(said("m2", "alice", "/停止"))
	after(2 * time.Second)
	want(t, "requests", len(w.model.requests("chat")), 0)
	want(t, "answers", w.wire.texts(), []string{wording.Say(wording.TurnStopped, "zh", "a slow question")})
	w.post(said("m3", "alice", "another slow question"))
	after(2 * time.Second)
	if _, err := w.store.mem.Accept(t.Context(), "b", group, said("m4", "alice", "/停")); err != nil {
		t.Fatal(err)
	}
	after(6 * time.Second)
	want(t, "the last answer", w.last().Reply.Text, wording.Say(wording.TurnStopped, "zh", "another slow question"))
}

// A /stop ends no later turn than the one that ran when it was written. That turn ended before the stop was seen, or its
// process was killed between its end and the command's answer.
func TestStopOfATurnThatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		w := start(t, setup{model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			<-hold
			return text("re: " + lastWords(r)), nil
		}}})
		w.say("m1", "alice", "first")
		w.say("m2", "alice", "second")
		if _, err := w.store.mem.Accept(t.Context(), "b", group, said("m3", "alice", "/stop")); err != nil {
			t.Fatal(err)
		}
		close(hold)
		after(time.Minute)
		texts := w.wire.texts()[1:]
		want(t, "answers", len(texts), 2)
		if !strings.Contains(texts[0], "second") || strings.Contains(texts[0], wording.Say(wording.CutShort, "en")) {
			t.Errorf("the next question has the answer %q", texts[0])
		}
		want(t, "the command's answer", texts[1], wording.Say(wording.NothingRuns, "en"))
	})
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{model: &script{chat: halfway("slow", "half")}})
		a.say("m1", "alice", "a slow question")
		a.say("m2", "alice", "second")
		a.store.fail(func(op string) error {
			if op == "begin" { // the next turn
				return errAway
			}
			return nil
		})
		a.say("m3", "alice", "/stop")
		want(t, "the stopped answer", len(a.wire.texts()), 1)
		a.kill()
		b := start(t, setup{shelf: a.store.shelf, name: "b", model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			return text("re: " + lastWords(r)), nil
		}}})
		after(time.Minute)
		texts := b.wire.texts()
		if len(texts) != 1 || !strings.Contains(texts[0], "second") {
			t.Errorf("after the kill people read %q", texts)
		}
	})
}

// A running tool is interrupted, and those behind it are not called. The log keeps both calls with their results.
func TestStopDuringATool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts atomic.Int32
		act := handTool{name: "act", f: func(ctx context.Context, _ chat.ToolInput) (string, error) {
			acts.Add(1)
			<-ctx.Done()
			return "", ctx.Err()
		}}
		var chats atomic.Int32
		w := start(t, setup{config: func(c *Config) { c.Tools = []chat.Tool{act} }, model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if err := context.Cause(ctx); err != nil {
				return llm.Response{}, &llm.CallError{Err: err}
			}
			if chats.Add(1) == 1 {
				return calls(call("c1", "act", `{"n":1}`), call("c2", "act", `{"n":2}`)), nil
			}
			return text("seen"), nil
		}}})
		w.say("m1", "alice", "act twice")
		w.say("m2", "alice", "/stop")
		want(t, "runs of the tool", acts.Load(), 1)
		w.say("m3", "alice", "what happened?")
		want(t, "results", w.results(), map[string]string{"c1": view.Interrupted, "c2": answer.NotRun})
		w.legalLog()
	})
}

// A long turn is announced once, also after a handover, and not where members see its text.
func TestBusyNote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noted := func(c *Config) { c.BusyNote = 30 * time.Second }
		a := start(t, setup{model: &script{chat: halfway("slow", "")}, config: noted})
		a.say("m1", "alice", "一个 slow 问题")
		after(29 * time.Second)
		want(t, "messages before", len(a.wire.texts()), 0)
		after(time.Minute)
		want(t, "messages", a.wire.texts(), []string{wording.Say(wording.StillBusy, "zh")})
		want(t, "mentions", len(a.last().Reply.Target.Mentions), 0)
		a.kill()
		b := start(t, setup{shelf: a.store.shelf, name: "b", model: &script{chat: halfway("slow", "")}, config: noted})
		after(2 * time.Minute)
		want(t, "requests of the next owner", len(b.model.requests("chat")), 1)
		want(t, "messages after the handover", len(b.wire.texts()), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: halfway("slow", "")}, config: func(c *Config) {
			c.BusyNote = 30 * time.Second
			c.Display = listener(func(string) {})
		}})
		w.say("m1", "alice", "a slow question")
		after(2 * time.Minute)
		want(t, "messages of a turn that is shown", len(w.wire.texts()), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: halfway("slow", "")}, config: func(c *Config) {
			c.BusyNote = 30 * time.Second
			c.Display = cardOf("none")
		}})
		w.say("m1", "alice", "a slow question")
		after(2 * time.Minute)
		want(t, "messages of a turn whose card was not opened", w.wire.texts(), []string{wording.Say(wording.StillBusy, "en")})
	})
}
