package slot_test

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
	"ebb/bot/gate"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// queueBoard is a display that keeps what people see: the questions of waiting turns, until those begin.
type queueBoard struct {
	mu     sync.Mutex
	events []string
	lang   string // language of the newest waiting turn
}

func (q *queueBoard) note(what string, s chat.Shown) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events = append(q.events, what+" "+s.Asked[0].Content)
	if what == "waits" {
		q.lang = s.Lang
	}
}

// seen lists what was shown of the questions that contain a word.
func (q *queueBoard) seen(word string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []string
	for _, e := range q.events {
		if strings.Contains(e, word) {
			out = append(out, e)
		}
	}
	return strings.Join(out, ", ")
}

func (q *queueBoard) Queue(_ context.Context, s chat.Shown) func() {
	q.note("waits", s)
	return func() { q.note("left", s) }
}

func (q *queueBoard) Show(_ context.Context, s chat.Shown) chat.Live {
	q.note("runs", s)
	return bottest.Carded("")
}

// inGroup is a message in another group.
func inGroup(n int, who, words string) sessions.Message {
	m := bottest.Said(fmt.Sprintf("%d-%s", n, words), who, words)
	m.ConversationID = sessions.ConversationID(fmt.Sprint("group", n))
	return m
}

// full starts a bot whose slots all have a turn. Its model speaks of those until release, and answers other words at once.
func full(t *testing.T, config func(*bot.Config)) (w *bottest.World, board *queueBoard, release func()) {
	t.Helper()
	board, hold := &queueBoard{}, make(chan struct{})
	w = bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) {
		c.MaxConcurrent, c.Display = 1, board
		if config != nil {
			config(c)
		}
	}, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
		select {
		case <-hold:
			return bottest.Text("re: " + bottest.LastWords(r)), nil
		case <-ctx.Done():
			return llm.Response{}, &llm.CallError{Err: context.Cause(ctx)}
		}
	}}})
	for i := range gate.TurnsPerCall {
		w.Post(inGroup(i, "alice", "early"))
	}
	bottest.After(queueGrace)
	return w, board, sync.OnceFunc(func() { close(hold); synctest.Wait() })
}

// queueGrace is the longest time without a sign that a turn waits.
const queueGrace = 250 * time.Millisecond

// A turn that waits for a slot is shown within a moment, until it begins. One with a slot is shown as running alone, and so
// is one that gets its slot at once.
func TestWaitingTurnsAreShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, board, release := full(t, nil)
		if got := board.seen("waits"); got != "" {
			t.Errorf("turns with a slot are shown as waiting: %s", got)
		}
		w.Post(inGroup(10, "bob", "late question"))
		bottest.After(queueGrace)
		bottest.Want(t, "shown", board.seen("late"), "waits late question")
		w.Post(inGroup(11, "bob", "/status"))
		bottest.After(time.Minute)
		bottest.Want(t, "shown of a command", board.seen("status"), "")
		release()
		bottest.Want(t, "shown in the end", board.seen("late"), "waits late question, left late question, runs late question")
		bottest.Want(t, "answers", len(w.Wire.Sends()), gate.TurnsPerCall+2)
	})
}

// A waiting question that says little about its language is shown in that of the turn before it.
func TestLanguageOfAWaitingTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		board, hold := &queueBoard{}, make(chan struct{})
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.MaxConcurrent, c.Display = 1, board }, Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(bottest.LastWords(r), "early") {
				<-hold
			}
			return bottest.Text("re"), nil
		}}})
		w.Post(inGroup(20, "bob", "发布到哪一步了"))
		w.Post(inGroup(21, "bob", "how far is the release"))
		bottest.After(time.Minute)
		for i := range gate.TurnsPerCall {
			w.Post(inGroup(i, "alice", "early"))
		}
		bottest.After(queueGrace)
		for _, tt := range []struct {
			group       int
			words, lang string
		}{{20, "https://example.com/log", "zh"}, {21, "👍", "en"}} {
			m := inGroup(tt.group, "bob", tt.words)
			m.ID += "-late"
			w.Post(m)
			bottest.After(queueGrace)
			bottest.Want(t, "language of "+tt.words, board.lang, tt.lang)
		}
		close(hold)
		synctest.Wait()
	})
}

// A waiting turn that a limit will stop is not shown: its asker reads the notice alone.
func TestLimitedTurnsAreNotShownAsWaiting(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]sessions.Limits{"person": {PersonTurns: gate.TurnsPerCall}, "tokens": {Tokens: 1, PersonTurns: 1000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, board, release := full(t, func(c *bot.Config) { c.Limits = limits })
				if name == "tokens" {
					s := sessions.Spending{Kind: sessions.SpentTurn, Usage: sessions.Usage{Prompt: 100}}
					if err := w.Store.Mem.Ledger.Charge(t.Context(), sessions.NewKey("robot", "group0", ""), s); err != nil {
						t.Fatal(err)
					}
				}
				w.Post(inGroup(10, "alice", "late question"))
				bottest.After(time.Second)
				bottest.Want(t, "shown", board.seen("late"), "")
				release()
			})
		})
	}
}

// The asker and an administrator stop a turn that waits for a slot, by a command or by the button. It is answered at once,
// without a call of the model, and by no other member.
func TestStopOfAWaitingTurn(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(question sessions.Event, key sessions.Key) sessions.Message{
		"asker": func(sessions.Event, sessions.Key) sessions.Message { return inGroup(10, "bob", "/stop") },
		"bare":  func(sessions.Event, sessions.Key) sessions.Message { return inGroup(10, "bob", "停") },
		"admin": func(sessions.Event, sessions.Key) sessions.Message { return inGroup(10, "root", "/stop") },
		"button": func(e sessions.Event, key sessions.Key) sessions.Message {
			m := inGroup(10, "bob", "/stop")
			m.ID, m.Press = chat.StopID(e.ID, "u-bob"), &sessions.Press{Button: sessions.ButtonStop, Turn: e.ID}
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, board, release := full(t, bottest.WithRoot)
				w.Post(inGroup(10, "bob", "late question"))
				bottest.After(time.Second)
				stranger := inGroup(10, "carol", "/stop")
				stranger.ID = "stranger"
				w.Post(stranger)
				bottest.After(time.Second)
				bottest.Want(t, "answers after a stranger's stop", len(w.Wire.Sends()), 0)
				key := sessions.NewKey("robot", "group10", "")
				w.Post(stop(w.Store.Mem.Events(t.Context(), key)[0], key))
				bottest.After(time.Second)
				end := wording.Say(wording.TurnStopped, "en", "late question")
				switch name {
				case "button":
					end = wording.Say(wording.CutShort, "en")
				case "bare":
					end = wording.Say(wording.TurnStopped, "zh", "late question")
				}
				if texts := w.Wire.Texts(); len(texts) == 0 || texts[0] != end {
					t.Fatalf("after the stop people read %q", texts)
				}
				if got := board.seen("late"); !strings.HasPrefix(got, "waits late question, left late question, runs late question") {
					t.Errorf("shown: %s", got)
				}
				bottest.Want(t, "requests of the model", len(w.Model.Requests("chat")), 1)
				release()
				bottest.Want(t, "requests of the model in the end", len(w.Model.Requests("chat")), gate.TurnsPerCall)
				for _, e := range w.Store.Mem.Events(t.Context(), key) {
					if e.State == sessions.Pending {
						t.Errorf("%q waits", e.Content)
					}
				}
			})
		})
	}
}

// A /stop of a turn that waits, whose messages are then answered in another turn than the one that waited, gives no place
// beside the slots: the question waits on.
func TestStopOfAnotherTurnGivesNoPlace(t *testing.T) {
	t.Parallel()
	t.Run("its asker is over a limit", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w, board, release := full(t, func(c *bot.Config) { c.Limits = sessions.Limits{PersonTurns: gate.TurnsPerCall} })
			w.Post(inGroup(10, "alice", "late question"))
			w.Post(inGroup(10, "bob", "late answer"))
			bottest.After(time.Second)
			w.Post(inGroup(10, "alice", "/stop"))
			bottest.After(10 * time.Second)
			if got := board.seen("late"); strings.Contains(got, "runs") {
				t.Errorf("without a free slot people see: %s", got)
			}
			release()
			bottest.After(time.Second)
			bottest.Want(t, "shown in the end", board.seen("runs late"), "runs late answer")
			bottest.Want(t, "requests of the model", len(w.Model.Requests("chat")), gate.TurnsPerCall+1)
		})
	})
	t.Run("its asker is over a limit, and another one has one turn left", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			limits := sessions.Limits{PersonTurns: gate.TurnsPerCall, GroupTurns: 1, UnidentifiedTurns: 1}
			w, board, release := full(t, func(c *bot.Config) { c.Limits = limits })
			for range gate.TurnsPerCall - 1 {
				bob := sessions.Askers{Robot: "robot", People: []sessions.UserID{"u-bob"}}
				if reached, err := w.Store.Mem.Limits.Admit(t.Context(), limits, bob); err != nil || len(reached) > 0 {
					t.Fatal(reached, err)
				}
			}
			w.Post(inGroup(10, "alice", "late question"))
			outside := inGroup(10, "bob", "late answer")
			outside.StaffID = ""
			w.Post(outside)
			bottest.After(time.Second)
			for i := range 3 { // each begins a turn of Bob's message, which waits on
				m := inGroup(10, "alice", "/stop")
				m.ID = sessions.MessageID(fmt.Sprint("stop", i))
				w.Post(m)
				bottest.After(5 * time.Second)
			}
			release()
			bottest.After(time.Second)
			bottest.Want(t, "shown in the end", board.seen("runs late"), "runs late answer")
			if !slices.ContainsFunc(w.Wire.Texts(), func(s string) bool { return strings.Contains(s, "late answer") }) {
				t.Errorf("Bob has no answer: people read %q", w.Wire.Texts())
			}
			used, err := w.Store.Mem.Limits.Used(t.Context(), sessions.Askers{Robot: "robot", Group: "group10", People: []sessions.UserID{"u-bob"}})
			if err != nil {
				t.Fatal(err)
			}
			bottest.Want(t, "turns of Bob and the group", []int{used.PersonTurns.Count, used.GroupTurns.Count}, []int{gate.TurnsPerCall, 1})
		})
	})
	t.Run("it was written during the turn before", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			first, others, board := make(chan struct{}), make(chan struct{}), &queueBoard{}
			w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.MaxConcurrent, c.Display = 1, board }, Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				if hold := others; !strings.Contains(bottest.LastWords(r), "first") {
					<-hold
				} else {
					<-first
				}
				return bottest.Text("re: " + bottest.LastWords(r)), nil
			}}})
			w.Post(inGroup(0, "alice", "first"))
			bottest.After(queueGrace)
			for i := range gate.TurnsPerCall { // the last one waits for a slot
				w.Post(inGroup(1+i, "alice", "other"))
			}
			w.Post(inGroup(0, "bob", "late question"))
			w.Post(inGroup(0, "bob", "/stop"))
			bottest.After(time.Second)
			close(first)
			bottest.After(time.Minute)
			if got := board.seen("late"); strings.Contains(got, "runs") {
				t.Errorf("without a free slot people see: %s", got)
			}
			close(others)
			bottest.After(time.Second)
			bottest.Want(t, "shown in the end", board.seen("runs late"), "runs late question")
			bottest.Want(t, "answers", len(w.Wire.Sends()), gate.TurnsPerCall+3)
		})
	})
}

// brokenBoard is a display that panics for a waiting turn.
type brokenBoard struct{ queueBoard }

func (*brokenBoard) Queue(context.Context, chat.Shown) func() { panic("broken display") }

// A panic while the messages of a waiting turn are looked at ends neither the process nor the turn.
func TestPanicOfAWaitingTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, release := full(t, func(c *bot.Config) { c.Display = &brokenBoard{} })
		w.Post(inGroup(10, "bob", "late question"))
		bottest.After(time.Minute)
		release()
		bottest.Want(t, "answers", len(w.Wire.Sends()), gate.TurnsPerCall+1)
		bottest.Want(t, "lines of the log", len(w.Log.Lines(t, "Look at waiting messages panicked")), 1)
	})
}

// Thousands of turns wait, and few of them look for a stop at intervals. A /stop of any of them is answered all the same.
func TestFewWaitingTurnsLookAtIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lookers, many = 200, 300
		w, board, release := full(t, nil)
		for i := range many {
			w.Post(inGroup(10+i, "bob", "late question"))
		}
		bottest.After(time.Second)
		before := w.Store.Called("pending")
		bottest.After(time.Minute)
		if n := w.Store.Called("pending") - before; n > lookers*13+gate.TurnsPerCall*13 {
			t.Errorf("%d looks in a minute", n)
		}
		bottest.Want(t, "turns that are shown", strings.Count(board.seen("late"), "waits"), lookers)
		for i := range many {
			w.Post(inGroup(10+i, "bob", "/stop"))
		}
		bottest.After(5 * time.Second)
		bottest.Want(t, "answers", len(w.Wire.Sends()), many)
		release()
	})
}

// More stopped turns than places beside the slots are answered all the same.
func TestManyStopsOfWaitingTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, release := full(t, nil)
		defer release()
		const many = 20
		for i := range many {
			w.Post(inGroup(10+i, "bob", "late question"))
		}
		bottest.After(time.Second)
		for i := range many {
			w.Post(inGroup(10+i, "bob", "/stop"))
		}
		bottest.After(time.Minute)
		bottest.Want(t, "messages", len(w.Wire.Sends()), many)
	})
}

// A clean stop ends the wait and its display. The next process answers the question.
func TestStopOfTheProcessEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, board, _ := full(t, nil)
		w.Post(inGroup(10, "bob", "late question"))
		bottest.After(time.Second)
		w.Stop()
		bottest.Want(t, "shown", board.seen("late"), "waits late question, left late question")
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: w.Store.Shelf})
		bottest.After(10 * time.Second)
		bottest.Want(t, "answers", len(b.Wire.Sends()), gate.TurnsPerCall+1)
	})
}
