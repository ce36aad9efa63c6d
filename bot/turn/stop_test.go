package turn_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/turn/answer"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// The asker and an administrator stop a turn: its words so far are the answer, in one message with that to the command. It names the
// messages that wait, and those are answered next. Several commands at once stop one turn.
func TestStop(t *testing.T) {
	t.Parallel()
	for who, commands := range map[string][]string{"alice": {"/stop"}, "root": {"/stop", "/stop"}} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				speak, written := bottest.Halfway("slow", " It began when "), make(chan struct{})
				model := func(ctx context.Context, r llm.Request) (llm.Response, error) {
					resp, err := speak(ctx, r)
					<-written // all commands are stored before the turn ends
					return resp, err
				}
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: model}, Config: func(c *bot.Config) {
					bottest.WithRoot(c)
					c.Models = []llm.ModelChoice{{Name: "fake", Price: llm.Price{In: 2, Out: 6}}}
				}})
				w.Say("m1", "alice", "tell a slow story")
				w.Say("m2", "bob", "What of the backup?\nIt is late again.")
				for i, words := range commands {
					w.Post(bottest.Said(fmt.Sprint("s", i), who, words))
				}
				close(written)
				synctest.Wait()
				texts := w.Wire.Texts()
				bottest.Want(t, "messages", len(texts), 2)
				bottest.Want(t, "the stopped answer", texts[0], "It began when\n\n"+wording.Say(wording.TurnStopped, "en", "tell a slow story")+
					wording.Say(wording.StillWaiting, "en", 1, `bob “What of the backup? It is late…”`))
				mentions := []sessions.Mention{{StaffID: "u-alice", Nick: "alice"}}
				if who != "alice" {
					mentions = append(mentions, sessions.Mention{StaffID: sessions.UserID("u-" + who), Nick: who})
				}
				bottest.Want(t, "its mentions", w.Wire.Sends()[0].Reply.Target.Mentions, mentions)
				if !strings.Contains(texts[1], "backup") {
					t.Errorf("the waiting message has the answer %q", texts[1])
				}
				s := w.State(bottest.Group)
				spent, err := w.Store.Mem.Ledger.Spent(t.Context(), bottest.Group, time.Now())
				if err != nil || len(spent) != 1 || s.Usage.Prompt == 0 || s.Usage.Completion == 0 {
					t.Fatalf("the stopped call is counted as %+v, %+v, %v", s.Usage, spent, err)
				}
				bottest.Want(t, "its cost", spent[0].Cost, llm.Price{In: 2, Out: 6}.Cost(s.Usage))
				for _, e := range w.View().Tail {
					bottest.Want(t, "attempts at "+e.Content, e.Attempts, 0)
				}
				bottest.Want(t, "the log's lines of failed calls", len(w.Log.Lines(t, "Model gave no answer")), 0)
			})
		})
	}
}

// While a turn runs, its asker may stop it by the bare word. At other times the word is a message like any other.
func TestBareWordStopsARunningTurn(t *testing.T) {
	t.Parallel()
	for word, lang := range map[string]string{"停止。": "zh", "停": "zh", "Stop!": "en"} {
		synctest.Test(t, func(t *testing.T) {
			w := bottest.Start(t, bottest.Setup{Config: bottest.WithRoot, Model: &bottest.Script{Chat: bottest.Halfway("slow", "half")}})
			w.Say("m1", "alice", "a slow story")
			w.Say("m2", "bob", word) // neither the asker nor an administrator
			bottest.Want(t, "messages after another member's word", len(w.Wire.Texts()), 0)
			w.Say("m3", "alice", word)
			texts := w.Wire.Texts()
			bottest.Want(t, "the answer to the word", texts[0], "half\n\n"+wording.Say(wording.TurnStopped, lang, "a slow story")+
				wording.Say(wording.StillWaiting, lang, 1, "bob “"+word+"”"))
			bottest.Want(t, "the answer to another member's word", texts[1], "re: bob(u-bob): "+word)
			if seen := w.Model.Requests("chat")[1]; strings.Contains(fmt.Sprint(seen.Messages), "alice(u-alice): "+word) {
				t.Errorf("the model reads the word that stopped it: %v", seen.Messages)
			}
			w.Say("m4", "alice", word)
			bottest.Want(t, "the answer without a turn", w.Wire.Texts()[2], "re: alice(u-alice): "+word)
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
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Gather = time.Second }, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
					select {
					case <-hold:
						return bottest.Text("the whole answer"), nil
					case <-ctx.Done():
						return llm.Response{}, &llm.CallError{Err: context.Cause(ctx)}
					}
				}}})
				for i, word := range words {
					w.Post(bottest.Said(fmt.Sprint("m", i), "alice", word))
				}
				bottest.After(2 * time.Second)
				before := w.Store.Called("pending")
				w.Post(bottest.Said("later", "bob", "another question"))
				bottest.After(time.Minute)
				if w.Store.Called("pending") < before+2 {
					t.Fatal("the turn did not look for a stop")
				}
				close(hold)
				synctest.Wait()
				bottest.Want(t, "answers", w.Wire.Texts(), []string{"the whole answer", "the whole answer"})
			})
		})
	}
}

// A waiting /stop of a member without a right is not among the messages that still wait for an answer.
func TestStopNamesNoOtherStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: bottest.WithRoot, Model: &bottest.Script{Chat: bottest.Halfway("slow", "half")}})
		w.Say("m1", "alice", "a slow story")
		w.Say("m2", "bob", "/stop")
		w.Say("m3", "root", "/stop")
		bottest.Want(t, "the answer", w.Wire.Texts()[0], "half\n\n"+wording.Say(wording.TurnStopped, "en", "a slow story"))
	})
}

// Names and words of people make neither links nor emphasis in the command's answer.
func TestStopNamesWaitingMessagesLiterally(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "half")}})
		w.Say("m1", "alice", "a slow `x`")
		m := bottest.Said("m2", "bob", "see [this](http://a.example) *now*")
		m.SenderNick = "[bob](http://b.example)\n# **chief**"
		w.Post(m)
		w.Say("m3", "alice", "/stop")
		bottest.Want(t, "the answer", w.Wire.Texts()[0], "half\n\n"+wording.Say(wording.TurnStopped, "en", "a slow ｀x｀")+
			wording.Say(wording.StillWaiting, "en", 1, "bob http //b.example ＃ ＊＊chief＊＊ “see ［this］(http://a.example) ＊…”"))
	})
}

// A member without a right changes nothing, and reads so when the turn is over. Without a turn there is nothing to stop.
func TestStopRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		w := bottest.Start(t, bottest.Setup{Config: bottest.WithRoot, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			select {
			case <-hold:
				return bottest.Text("the whole story"), nil
			case <-ctx.Done():
				return llm.Response{}, &llm.CallError{Err: context.Cause(ctx)}
			}
		}}})
		w.Say("m1", "alice", "tell a story")
		w.Say("m2", "bob", "/stop")
		w.Say("m3", "alice", "/stop now") // a wrong argument stops nothing
		bottest.After(time.Minute)
		bottest.Want(t, "messages so far", len(w.Wire.Texts()), 0)
		close(hold)
		synctest.Wait()
		texts := w.Wire.Texts()
		bottest.Want(t, "the answer", texts[0], "the whole story")
		bottest.Want(t, "the stranger's answer", texts[1], wording.Say(wording.NotYourTurn, "en"))
		bottest.Want(t, "the wrong command's answer", strings.HasPrefix(texts[2], "Usage: "), true)
		for i, who := range []string{"bob", "alice", "root"} {
			w.Say(fmt.Sprint("n", i), who, "/stop")
			bottest.Want(t, who+" without a turn", w.Last().Reply.Text, wording.Say(wording.NothingRuns, "en"))
		}
	})
}

// A button's command stops a turn without words of its own; a written one next to it has its answer.
func TestStopByAButton(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "half")}})
			w.Say("m1", "alice", "a slow question")
			click := bottest.Said(string(chat.StopID(w.Store.Mem.Events(t.Context(), bottest.Group)[0].ID, "u-alice")), "alice", "/stop")
			click.Press = &sessions.Press{Button: sessions.ButtonStop, Turn: w.Store.Mem.Events(t.Context(), bottest.Group)[0].ID}
			w.Post(click)
			expected := []string{"half\n\n" + wording.Say(wording.CutShort, "en")}
			if written {
				w.Post(bottest.Said("m2", "alice", "/stop"))
				expected = []string{"half\n\n" + wording.Say(wording.TurnStopped, "en", "a slow question")}
			}
			synctest.Wait()
			bottest.Want(t, "answers", strings.Join(w.Wire.Texts(), "|"), strings.Join(expected, "|"))
			w.Say("m3", "alice", "next")
			bottest.Want(t, "the next answer", w.Last().Reply.Text, "re: "+bottest.LastWords(w.Model.Requests("chat")[1]))
		})
	}
}

// The configuration may reserve the command for administrators.
func TestStopReserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "half")}, Config: func(c *bot.Config) {
			bottest.WithRoot(c)
			c.CommandRights = map[string]string{"stop": "admin"}
		}})
		w.Say("m1", "alice", "a slow question")
		w.Say("m2", "alice", "/stop")
		bottest.Want(t, "answers before", len(w.Wire.Texts()), 0)
		w.Say("m3", "root", "/stop")
		bottest.Want(t, "answers", strings.Join(w.Wire.Texts(), "|"), strings.Join([]string{
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
	w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "")}, Config: func(c *bot.Config) { c.Gather, c.AloneEach = time.Second, alone }})
	w.Post(bottest.Said("m1", "alice", "a slow question"))
	w.Post(bottest.Said("m2", "alice", "/停止"))
	bottest.After(2 * time.Second)
	bottest.Want(t, "requests", len(w.Model.Requests("chat")), 0)
	bottest.Want(t, "answers", w.Wire.Texts(), []string{wording.Say(wording.TurnStopped, "zh", "a slow question")})
	w.Post(bottest.Said("m3", "alice", "another slow question"))
	bottest.After(2 * time.Second)
	if _, err := w.Store.Mem.Inbox.Accept(t.Context(), "b", bottest.Group, bottest.Said("m4", "alice", "/停")); err != nil {
		t.Fatal(err)
	}
	bottest.After(6 * time.Second)
	bottest.Want(t, "the last answer", w.Last().Reply.Text, wording.Say(wording.TurnStopped, "zh", "another slow question"))
}

// A /stop ends no later turn than the one that ran when it was written. That turn ended before the stop was seen, or its
// process was killed between its end and the command's answer.
func TestStopOfATurnThatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			<-hold
			return bottest.Text("re: " + bottest.LastWords(r)), nil
		}}})
		w.Say("m1", "alice", "first")
		w.Say("m2", "alice", "second")
		if _, err := w.Store.Mem.Inbox.Accept(t.Context(), "b", bottest.Group, bottest.Said("m3", "alice", "/stop")); err != nil {
			t.Fatal(err)
		}
		close(hold)
		bottest.After(time.Minute)
		texts := w.Wire.Texts()[1:]
		bottest.Want(t, "answers", len(texts), 2)
		if !strings.Contains(texts[0], "second") || strings.Contains(texts[0], wording.Say(wording.CutShort, "en")) {
			t.Errorf("the next question has the answer %q", texts[0])
		}
		bottest.Want(t, "the command's answer", texts[1], wording.Say(wording.NothingRuns, "en"))
	})
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "half")}})
		a.Say("m1", "alice", "a slow question")
		a.Say("m2", "alice", "second")
		a.Store.Fail(func(op string) error {
			if op == "begin" { // the next turn
				return bottest.ErrAway
			}
			return nil
		})
		a.Say("m3", "alice", "/stop")
		bottest.Want(t, "the stopped answer", len(a.Wire.Texts()), 1)
		a.Kill()
		b := bottest.Start(t, bottest.Setup{Shelf: a.Store.Shelf, Name: "b", Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			return bottest.Text("re: " + bottest.LastWords(r)), nil
		}}})
		bottest.After(time.Minute)
		texts := b.Wire.Texts()
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
		act := bottest.HandTool{Name: "act", F: func(ctx context.Context, _ chat.ToolInput) (string, error) {
			acts.Add(1)
			<-ctx.Done()
			return "", ctx.Err()
		}}
		var chats atomic.Int32
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Tools = []chat.Tool{act} }, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if err := context.Cause(ctx); err != nil {
				return llm.Response{}, &llm.CallError{Err: err}
			}
			if chats.Add(1) == 1 {
				return bottest.Calls(bottest.Call("c1", "act", `{"n":1}`), bottest.Call("c2", "act", `{"n":2}`)), nil
			}
			return bottest.Text("seen"), nil
		}}})
		w.Say("m1", "alice", "act twice")
		w.Say("m2", "alice", "/stop")
		bottest.Want(t, "runs of the tool", acts.Load(), 1)
		w.Say("m3", "alice", "what happened?")
		bottest.Want(t, "results", w.Results(), map[string]string{"c1": view.Interrupted, "c2": answer.NotRun})
		w.LegalLog()
	})
}

// A long turn is announced once, also after a handover, and not where members see its text.
func TestBusyNote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noted := func(c *bot.Config) { c.BusyNote = 30 * time.Second }
		a := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "")}, Config: noted})
		a.Say("m1", "alice", "一个 slow 问题")
		bottest.After(29 * time.Second)
		bottest.Want(t, "messages before", len(a.Wire.Texts()), 0)
		bottest.After(time.Minute)
		bottest.Want(t, "messages", a.Wire.Texts(), []string{wording.Say(wording.StillBusy, "zh")})
		bottest.Want(t, "mentions", len(a.Last().Reply.Target.Mentions), 0)
		a.Kill()
		b := bottest.Start(t, bottest.Setup{Shelf: a.Store.Shelf, Name: "b", Model: &bottest.Script{Chat: bottest.Halfway("slow", "")}, Config: noted})
		bottest.After(2 * time.Minute)
		bottest.Want(t, "requests of the next owner", len(b.Model.Requests("chat")), 1)
		bottest.Want(t, "messages after the handover", len(b.Wire.Texts()), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "")}, Config: func(c *bot.Config) {
			c.BusyNote = 30 * time.Second
			c.Display = bottest.Listener(func(string) {})
		}})
		w.Say("m1", "alice", "a slow question")
		bottest.After(2 * time.Minute)
		bottest.Want(t, "messages of a turn that is shown", len(w.Wire.Texts()), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "")}, Config: func(c *bot.Config) {
			c.BusyNote = 30 * time.Second
			c.Display = bottest.CardOf("none")
		}})
		w.Say("m1", "alice", "a slow question")
		bottest.After(2 * time.Minute)
		bottest.Want(t, "messages of a turn whose card was not opened", w.Wire.Texts(), []string{wording.Say(wording.StillBusy, "en")})
	})
}
