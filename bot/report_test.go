package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/sessions"
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

func (w *world) report() string {
	w.t.Helper()
	lines := w.log.lines(w.t, "Restart report")
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
		kept, g := &book{}, newGate()
		w := start(t, setup{
			config: func(c *Config) { c.Reporter = kept },
			model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if strings.Contains(lastWords(r), "slow") {
					return text("done"), g.pass(ctx)
				}
				return text("ok"), nil
			}},
		})
		kept.resign = func() int { return w.store.called("resign") }
		w.say("m1", "alice", "hello")
		w.post(said("m1", "alice", "hello")) // again
		w.post(in("c2", said("m2", "bob", "slow")))
		<-g.in
		after(6 * time.Second)
		if last := kept.entries()[len(kept.entries())-1]; last.ending != sessions.Running || last.figures.Answered != 1 || last.figures.Redelivered != 1 {
			t.Errorf("while it runs the book has %+v", last)
		}
		w.begin()
		synctest.Wait()
		g.out <- struct{}{}
		w.stop()
		want(t, "report", w.report(), "2 1 2 0 0 1 0 0")
		all, err := w.gather()
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
		want(t, "metrics", fmt.Sprint(shown), "map[answered:2 debt:0 doubled:0 drained:1 flushed:2 lost:0 redelivered:1 resumed:0]")
		entries := kept.entries()
		last := entries[len(entries)-1]
		want(t, "the book's last word", fmt.Sprint(last), "{a clean {2 1 2 0 0 1 0 0} false}")
	})
}

// The end of a process is reported once in the log of its reader, a kill as a warning, and counted.
func TestReportOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &book{ended: []sessions.Restart{{Replica: "dead", Ending: sessions.Killed, Figures: sessions.RestartFigures{Answered: 7, Lost: 2}}}}
		w := start(t, setup{config: func(c *Config) { c.Reporter = kept }})
		after(12 * time.Second)
		lines := w.log.lines(t, "Restart report")
		if len(lines) != 1 {
			t.Fatalf("%d reports, want one", len(lines))
		}
		want(t, "report", fmt.Sprintln(lines[0]["of"], lines[0]["ending"], lines[0]["level"], lines[0]["answered"]), "dead killed warn 7\n")
		want(t, "counted as killed", series(t, w, "ebb_restarts_total", "killed"), 1)
		want(t, "counted as clean", series(t, w, "ebb_restarts_total", "clean"), 0)
		want(t, "counted as lost", series(t, w, "ebb_restarts_lost_total"), 2)
	})
}

// series is what a counter with these values of its labels, in the order of their names, stands at; -1 where there is none.
func series(t *testing.T, w *world, name string, labels ...string) float64 {
	t.Helper()
	all, err := w.gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(values, labels) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// Metrics of alerts stand at 0 before the first event: a series that begins with its first event shows no increase.
func TestMetricsBeginAtNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		for name, words := range map[string]string{
			"ebb_messages_accepted_total": "new duplicate error",
			"ebb_restarts_total":          "clean killed",
			"ebb_memory_flushes_total":    "saved nothing failed",
			"ebb_daily_digests_total":     "written nothing failed",
		} {
			for word := range strings.FieldsSeq(words) {
				want(t, name+" "+word, series(t, w, name, word), 0)
			}
		}
		for _, via := range []string{"none", "webhook", "openapi"} {
			for _, outcome := range []string{"sent", "retried", "given_up"} {
				want(t, "replies "+via+" "+outcome, series(t, w, "ebb_replies_total", outcome, via), 0)
			}
		}
		want(t, "lost", series(t, w, "ebb_restarts_lost_total"), 0)
	})
}

// A message that was acknowledged and is not in the log is an error, a number in the report, and a number in the book.
func TestReportOfLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &book{}
		var asked []sessions.Stored
		kept.gone = func(s []sessions.Stored) int64 { asked = s; return 1 }
		w := start(t, setup{config: func(c *Config) { c.Reporter = kept }})
		w.say("m1", "alice", "hello")
		after(3 * time.Second)
		w.say("m2", "alice", "and more")
		w.stop()
		if len(asked) != 2 || asked[0].Key != group || asked[0].EventID == asked[1].EventID || asked[0].Age-asked[1].Age != 3*time.Second {
			t.Errorf("looked for %+v, want both messages with their ages", asked)
		}
		want(t, "report", w.report(), "2 0 1 0 0 0 0 1")
		want(t, "errors", len(w.log.lines(t, "Messages that were acknowledged are not in the log")), 1)
		all := kept.entries()
		want(t, "in the book", all[len(all)-1].figures.Lost, 1)
	})
}

// A book that can't be written holds nothing up, and the log has the report all the same.
func TestReportWithoutBook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &book{away: errAway}
		w := start(t, setup{config: func(c *Config) { c.Reporter = kept }})
		w.say("m1", "alice", "hello")
		after(6 * time.Second)
		kept.mu.Lock()
		kept.away = nil
		kept.mu.Unlock()
		after(10 * time.Second)
		if n := len(kept.entries()); n == 0 {
			t.Error("the account was not taken up when the book was back")
		}
		kept.mu.Lock()
		kept.away = errAway
		kept.mu.Unlock()
		w.stop()
		want(t, "report", w.report(), "1 0 1 0 0 0 0 0")
	})
}

// A message whose turn broke with its process, and a reply that a process left, are taken over once; a turn that broke in
// this process is nothing taken over.
func TestResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{
			name: "a",
			wire: sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
				return chat.Sent{}, &chat.SendError{After: 20 * time.Second, Err: errors.New("130101")}
			}),
			model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if strings.Contains(lastWords(r), "hang") {
					return hang(ctx, r)
				}
				return text("ok"), nil
			}},
		})
		a.post(in("c2", said("m1", "alice", "hello"))) // its reply waits
		a.say("m2", "bob", "hang")
		a.kill()
		var broke atomic.Bool
		b := start(t, setup{name: "b", shelf: a.store.shelf, model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(lastWords(r), "poison") && !broke.Swap(true) {
				panic("poisoned")
			}
			return text("from b"), nil
		}}})
		b.post(in("c3", said("m3", "carol", "poison")))
		after(2 * time.Minute)
		want(t, "replies of b", len(b.wire.sends()), 3)
		b.stop()
		if got := strings.Fields(b.report())[4]; got != "2" {
			t.Errorf("resumed %s, want the message and the reply: %s", got, b.report())
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
				wire := func() *wire {
					return &wire{send: func(ctx context.Context, _ sessions.Outgoing) (chat.Sent, error) {
						tries++
						switch {
						case tries == 1 && c.first == nil:
							<-ctx.Done()
							return chat.Sent{}, errAway
						case tries == 1:
							return chat.Sent{}, c.first
						case tries == 2 && c.second != nil:
							return chat.Sent{}, c.second
						}
						return arrived, nil
					}}
				}
				w := start(t, setup{name: "a", wire: wire()})
				w.say("m1", "alice", "hello")
				if c.first == nil {
					w.store.fail(func(string) error { return errAway })
					w = start(t, setup{name: "b", shelf: w.store.shelf, wire: wire()})
				}
				after(3 * time.Minute)
				w.stop()
				if got := strings.Fields(w.report())[6]; got != c.want {
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
		a := start(t, setup{name: "a", wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return chat.Sent{}, &chat.SendError{Maybe: true, After: 20 * time.Second, Err: errors.New("timeout")}
			}
			return chat.Sent{}, &chat.SendError{After: 20 * time.Second, Err: errors.New("130101")}
		})})
		a.say("m1", "alice", "first")
		a.say("m2", "bob", "second")
		a.stop()
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(time.Minute)
		sent := b.wire.sends()
		if len(sent) != 2 || sent[0].Reply.Nonce != a.wire.sends()[0].Reply.Nonce {
			t.Fatalf("b sent %d messages, want the first again under its key, and the second", len(sent))
		}
		b.stop()
		want(t, "report of b", b.report(), "0 0 0 0 2 0 1 0")
	})
}

// Forty sessions and little time: what the stop can't flush is owed, and the next process flushes all of that soon, the
// longest owed first, and nothing twice.
func TestStopLeavesDebt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rooms = 40
		slow := &script{flush: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			select {
			case <-time.After(time.Second):
				return saveCall("a fact"), nil
			case <-ctx.Done():
				return llm.Response{}, context.Cause(ctx)
			}
		}}
		a := start(t, setup{name: "a", model: slow, config: func(c *Config) { c.Flush = 1500 * time.Millisecond }})
		room := func(i int) sessions.Key {
			return sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("room", i)), "")
		}
		for i := range rooms {
			a.post(in(fmt.Sprint("room", i), said("m", "alice", "let us say something")))
			synctest.Wait()
		}
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the stop took %s", took)
		}
		want(t, "report", a.report(), "40 0 16 24 0 0 0 0")
		owed := 0
		for i := range rooms {
			if f := a.store.flushes(room(i)); f.owed > 0 {
				owed++
				want(t, "failures", f.failures, 0)
			}
		}
		want(t, "sessions that owe", owed, 24)
		b := start(t, setup{name: "b", shelf: a.store.shelf, model: slow})
		after(time.Minute)
		for i := range rooms {
			if f := b.store.flushes(room(i)); f.owed != 0 || fmt.Sprint(f.ranges) != "[[0 2]]" {
				t.Errorf("room %d: owed up to %d, flushed %v", i, f.owed, f.ranges)
			}
		}
	})
}
