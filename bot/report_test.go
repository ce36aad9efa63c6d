package bot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// book is a Reporter that keeps its reports.
type book struct {
	mu     sync.Mutex
	opened []sessions.ReplicaID
	kept   []entry
	ended  []sessions.Restart // handed out once
	gone   func([]sessions.Stored) int64
	away   error
	resign func() int // how often leases were resigned so far
}

type entry struct {
	owner    sessions.ReplicaID
	ending   sessions.Ending
	figures  sessions.RestartFigures
	resigned bool // the leases were handed over before
}

func (b *book) OpenRestart(_ context.Context, owner sessions.ReplicaID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = append(b.opened, owner)
	return b.away
}

func (b *book) KeepRestart(_ context.Context, owner sessions.ReplicaID, ending sessions.Ending, f sessions.RestartFigures) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away == nil {
		b.kept = append(b.kept, entry{owner, ending, f, b.resign != nil && b.resign() > 0})
	}
	return b.away
}

func (b *book) EndedRestarts(context.Context) ([]sessions.Restart, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.ended
	b.ended = nil
	return ended, b.away
}

func (b *book) Gone(_ context.Context, stored []sessions.Stored) (int64, error) {
	if b.gone == nil {
		return 0, b.away
	}
	return b.gone(stored), b.away
}

func (b *book) entries() []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

// figures are the numbers of a report's line, in their order.
func figures(line map[string]any) string {
	var out []string
	for _, name := range []string{"answered", "drained", "flushed", "debt", "resumed", "redelivered", "doubled", "lost"} {
		out = append(out, fmt.Sprint(line[name]))
	}
	return strings.Join(out, " ")
}

func report(w *bottest.World) string {
	w.T.Helper()
	lines := w.Log.Lines(w.T, "Restart report")
	if len(lines) == 0 {
		return "none"
	}
	return figures(lines[len(lines)-1])
}

// A process's account up to its clean stop stands in its log and in the book. Its end is in the book before its
// heartbeat stops: otherwise another process would take the stop for a kill.
func TestReportOfAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, g := &book{}, bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.Reporter = kept },
			Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if strings.Contains(bottest.LastWords(r), "slow") {
					return bottest.Text("done"), g.Pass(ctx)
				}
				return bottest.Text("ok"), nil
			}},
		})
		kept.resign = func() int { return w.Store.Called("resign") }
		w.Say("m1", "alice", "hello")
		w.Post(bottest.Said("m1", "alice", "hello")) // again
		w.Post(in("c2", bottest.Said("m2", "bob", "slow")))
		<-g.In
		bottest.After(6 * time.Second)
		if last := kept.entries()[len(kept.entries())-1]; last.ending != sessions.Running || last.figures.Answered != 1 || last.figures.Redelivered != 1 {
			t.Errorf("while it runs the book has %+v", last)
		}
		w.Begin()
		synctest.Wait()
		g.Out <- struct{}{}
		w.Stop()
		bottest.Want(t, "report", report(w), "2 1 2 0 0 1 0 0")
		all, err := w.Gather()
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]float64{}
		for _, f := range all {
			for _, m := range f.GetMetric() {
				if f.GetName() == "ebb_restart_report" {
					shown[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
		bottest.Want(t, "metrics", fmt.Sprint(shown), "map[answered:2 debt:0 doubled:0 drained:1 flushed:2 lost:0 redelivered:1 resumed:0]")
		entries := kept.entries()
		last := entries[len(entries)-1]
		bottest.Want(t, "the book's last word", fmt.Sprint(last), "{a clean {2 1 2 0 0 1 0 0} false}")
	})
}

// The end of a process is reported once in the log of its reader, a kill as a warning, and counted.
func TestReportOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &book{ended: []sessions.Restart{{Replica: "dead", Ending: sessions.Killed, Figures: sessions.RestartFigures{Answered: 7, Lost: 2}}}}
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Reporter = kept }})
		bottest.After(12 * time.Second)
		lines := w.Log.Lines(t, "Restart report")
		if len(lines) != 1 {
			t.Fatalf("%d reports, want one", len(lines))
		}
		bottest.Want(t, "report", fmt.Sprintln(lines[0]["of"], lines[0]["ending"], lines[0]["level"], lines[0]["answered"]), "dead killed warn 7\n")
		bottest.Want(t, "counted as killed", bottest.Series(t, w, "ebb_restarts_total", "killed"), 1)
		bottest.Want(t, "counted as clean", bottest.Series(t, w, "ebb_restarts_total", "clean"), 0)
		bottest.Want(t, "counted as lost", bottest.Series(t, w, "ebb_restarts_lost_total"), 2)
	})
}

// Metrics of alerts stand at 0 before the first event: a series that begins with its first event shows no increase.
func TestMetricsBeginAtNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		for name, words := range map[string]string{
			"ebb_messages_accepted_total": "new duplicate error",
			"ebb_restarts_total":          "clean killed",
			"ebb_memory_flushes_total":    "saved nothing failed",
			"ebb_daily_digests_total":     "written nothing failed",
		} {
			for word := range strings.FieldsSeq(words) {
				bottest.Want(t, name+" "+word, bottest.Series(t, w, name, word), 0)
			}
		}
		for _, via := range []string{"none", "webhook", "openapi"} {
			for _, outcome := range []string{"sent", "retried", "given_up"} {
				bottest.Want(t, "replies "+via+" "+outcome, bottest.Series(t, w, "ebb_replies_total", outcome, via), 0)
			}
		}
		bottest.Want(t, "lost", bottest.Series(t, w, "ebb_restarts_lost_total"), 0)
	})
}

// A message that was acknowledged and is not in the log is an error, a number in the report, and a number in the book.
func TestReportOfLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &book{}
		var asked []sessions.Stored
		kept.gone = func(s []sessions.Stored) int64 { asked = s; return 1 }
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Reporter = kept }})
		w.Say("m1", "alice", "hello")
		bottest.After(3 * time.Second)
		w.Say("m2", "alice", "and more")
		w.Stop()
		if len(asked) != 2 || asked[0].Key != bottest.Group || asked[0].EventID == asked[1].EventID || asked[0].Age-asked[1].Age != 3*time.Second {
			t.Errorf("looked for %+v, want both messages with their ages", asked)
		}
		bottest.Want(t, "report", report(w), "2 0 1 0 0 0 0 1")
		bottest.Want(t, "errors", len(w.Log.Lines(t, "Messages that were acknowledged are not in the log")), 1)
		all := kept.entries()
		bottest.Want(t, "in the book", all[len(all)-1].figures.Lost, 1)
	})
}

// A book that can't be written holds nothing up, and the log has the report all the same.
func TestReportWithoutBook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &book{away: bottest.ErrAway}
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Reporter = kept }})
		w.Say("m1", "alice", "hello")
		bottest.After(6 * time.Second)
		kept.mu.Lock()
		kept.away = nil
		kept.mu.Unlock()
		bottest.After(10 * time.Second)
		if n := len(kept.entries()); n == 0 {
			t.Error("the account was not taken up when the book was back")
		}
		kept.mu.Lock()
		kept.away = bottest.ErrAway
		kept.mu.Unlock()
		w.Stop()
		bottest.Want(t, "report", report(w), "1 0 1 0 0 0 0 0")
	})
}

// A message whose turn broke with its process, and a reply that a process left, are taken over once; a turn that broke in
// this process is nothing taken over.
func TestResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{
			Name: "a",
			Wire: bottest.Sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
				return chat.Sent{}, &chat.SendError{After: 20 * time.Second, Err: errors.New("130101")}
			}),
			Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if strings.Contains(bottest.LastWords(r), "hang") {
					return bottest.Hang(ctx, r)
				}
				return bottest.Text("ok"), nil
			}},
		})
		a.Post(in("c2", bottest.Said("m1", "alice", "hello"))) // its reply waits
		a.Say("m2", "bob", "hang")
		a.Kill()
		var broke atomic.Bool
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(bottest.LastWords(r), "poison") && !broke.Swap(true) {
				panic("poisoned")
			}
			return bottest.Text("from b"), nil
		}}})
		b.Post(in("c3", bottest.Said("m3", "carol", "poison")))
		bottest.After(2 * time.Minute)
		bottest.Want(t, "replies of b", len(b.Wire.Sends()), 3)
		b.Stop()
		if got := strings.Fields(report(b))[4]; got != "2" {
			t.Errorf("resumed %s, want the message and the reply: %s", got, report(b))
		}
	})
}

// A reply is counted as perhaps doubled when it is sent again and may have arrived: once, however often that took, and
// never where it surely had not arrived.
func TestDoubled(t *testing.T) {
	t.Parallel()
	timeout := &chat.SendError{Maybe: true, Err: errors.New("timeout")}
	for name, c := range map[string]struct {
		first  error // nil: the process is killed before the mark
		second error
		want   string
	}{
		"killed before the mark":   {nil, nil, "1"},
		"killed, and then refused": {nil, errors.New("502"), "1"},
		"answer lost":              {timeout, nil, "1"},
		"answer lost, refused":     {timeout, errors.New("502"), "1"},
		"refused":                  {errors.New("502"), errors.New("502"), "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var tries int
				wire := func() *bottest.Wire {
					return &bottest.Wire{Deliver: func(ctx context.Context, _ sessions.Outgoing) (chat.Sent, error) {
						tries++
						switch {
						case tries == 1 && c.first == nil:
							<-ctx.Done()
							return chat.Sent{}, bottest.ErrAway
						case tries == 1:
							return chat.Sent{}, c.first
						case tries == 2 && c.second != nil:
							return chat.Sent{}, c.second
						}
						return bottest.Arrived, nil
					}}
				}
				w := bottest.Start(t, bottest.Setup{Name: "a", Wire: wire()})
				w.Say("m1", "alice", "hello")
				if c.first == nil {
					w.Store.Fail(func(string) error { return bottest.ErrAway })
					w = bottest.Start(t, bottest.Setup{Name: "b", Shelf: w.Store.Shelf, Wire: wire()})
				}
				bottest.After(3 * time.Minute)
				w.Stop()
				if got := strings.Fields(report(w))[6]; got != c.want {
					t.Errorf("doubled %s, want %s after %d tries", got, c.want, tries)
				}
			})
		})
	}
}

// That a reply may have arrived is known to the next process too: it goes out alone and under its own key.
func TestMaybeOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return chat.Sent{}, &chat.SendError{Maybe: true, After: 20 * time.Second, Err: errors.New("timeout")}
			}
			return chat.Sent{}, &chat.SendError{After: 20 * time.Second, Err: errors.New("130101")}
		})})
		a.Say("m1", "alice", "first")
		a.Say("m2", "bob", "second")
		a.Stop()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(time.Minute)
		sent := b.Wire.Sends()
		if len(sent) != 2 || sent[0].Reply.Nonce != a.Wire.Sends()[0].Reply.Nonce {
			t.Fatalf("b sent %d messages, want the first again under its key, and the second", len(sent))
		}
		b.Stop()
		bottest.Want(t, "report of b", report(b), "0 0 0 0 2 0 1 0")
	})
}

// Forty sessions and little time: what the stop can't flush is owed, and the next process flushes all of that soon, the
// longest owed first, and nothing twice.
func TestStopLeavesDebt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rooms = 40
		slow := &bottest.Script{Flush: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			select {
			case <-time.After(time.Second):
				return bottest.SaveCall("a fact"), nil
			case <-ctx.Done():
				return llm.Response{}, context.Cause(ctx)
			}
		}}
		a := bottest.Start(t, bottest.Setup{Name: "a", Model: slow, Config: func(c *bot.Config) { c.Flush = 1500 * time.Millisecond }})
		room := func(i int) sessions.Key {
			return sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("room", i)), "")
		}
		for i := range rooms {
			a.Post(in(fmt.Sprint("room", i), bottest.Said("m", "alice", "let us say something")))
			synctest.Wait()
		}
		began := time.Now()
		a.Stop()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the stop took %s", took)
		}
		bottest.Want(t, "report", report(a), "40 0 16 24 0 0 0 0")
		owed := 0
		for i := range rooms {
			if f := a.Store.Flushes(room(i)); f.Owed > 0 {
				owed++
				bottest.Want(t, "failures", f.Failures, 0)
			}
		}
		bottest.Want(t, "sessions that owe", owed, 24)
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Model: slow})
		bottest.After(time.Minute)
		for i := range rooms {
			if f := b.Store.Flushes(room(i)); f.Owed != 0 || fmt.Sprint(f.Ranges) != "[[0 2]]" {
				t.Errorf("room %d: owed up to %d, flushed %v", i, f.Owed, f.Ranges)
			}
		}
	})
}
