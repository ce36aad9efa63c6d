package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// shanghai is a zone whose days are not those of UTC.
var shanghai = time.FixedZone("CST", 8*3600)

func nightly(c *bot.Config) { c.DigestAt, c.Location = "04:00", shanghai }

// until waits for a time of day in Shanghai, and for what happens then.
func until(hour, minute int) {
	now := time.Now().In(shanghai)
	t := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, shanghai)
	if !t.After(now) {
		t = t.AddDate(0, 0, 1)
	}
	bottest.After(time.Until(t))
}

// discuss says n things in the group.
func discuss(w *bottest.World, about string, n int) {
	w.T.Helper()
	for i := range n {
		w.Say(fmt.Sprint(about, i), "alice", fmt.Sprintf("about %s, point %d", about, i))
	}
}

// dayRequests are the requests for digests.
func dayRequests(m *bottest.Script) []llm.Request {
	return slices.DeleteFunc(m.Requests("summary"), func(r llm.Request) bool { return !strings.Contains(r.Messages[0].Content, "What happened") })
}

func TestDailyDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Config: nightly})
		until(9, 0)
		date := time.Now().In(shanghai).Format(time.DateOnly)
		discuss(w, "heron", 6)
		w.Say("cmd", "alice", "/status")
		until(0, 30) // before the time of the digest, and of the next day
		discuss(w, "osprey", 6)
		until(3, 59)
		bottest.Want(t, "digests before the time", len(w.Store.Digests()), 0)
		sent := len(w.Wire.Sends())
		until(4, 2)
		got := w.Store.Digests()
		bottest.Want(t, "digests", len(got), 1)
		m := got[0]
		bottest.Want(t, "scope", []any{m.Scope, m.ScopeID, m.SubjectID, m.SourceSession}, []any{memory.ScopeGroup, bottest.Group, "", bottest.Group})
		bottest.Want(t, "range", []int64{m.StartSeq, m.EndSeq}, []int64{1, 12})
		if !strings.HasPrefix(m.Content, "# Daily digest of "+date) || !strings.Contains(m.Content, "osprey") {
			t.Errorf("the digest reads %q", m.Content)
		}
		asked := dayRequests(w.Model)
		bottest.Want(t, "requests", len(asked), 1)
		asked1 := bottest.LastWords(asked[0])
		if !strings.Contains(asked1, "about heron, point 5") || strings.Contains(asked1, "about osprey") || strings.Contains(asked1, "/status") || !strings.HasPrefix(asked1, "<<<transcript") {
			t.Errorf("the model was shown %q", asked1)
		}
		bottest.Want(t, "messages to the group", len(w.Wire.Sends()), sent)
		lines := w.Log.Lines(t, "Daily digest written")
		if len(lines) != 1 || lines[0]["day"] != date || lines[0]["session"] != string(bottest.Group) {
			t.Errorf("log lines %v", lines)
		}
		text, err := show.Get(t.Context(), w.Store, memory.Reader{Key: bottest.Group, Robot: "robot", Conversation: "c1"}, "memory/group/"+date+".md", 1, show.LogReader{Location: shanghai})
		if err != nil || !strings.Contains(text, "osprey") {
			t.Errorf("its path reads %q, %v", text, err)
		}
		until(4, 2)
		bottest.Want(t, "digests a day later", len(w.Store.Digests()), 2)
		until(4, 2)
		bottest.Want(t, "digests after a day of silence", len(w.Store.Digests()), 2)
	})
}

// A day's digest leaves out a person's pay and health, for the whole group reads it.
func TestDigestOmitsPersonalFacts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text(bottest.GoodSummary + "\n- 李雷的月薪是 23000 元\n- Bob was diagnosed with diabetes"), nil
		}}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: nightly})
		until(9, 0)
		discuss(w, "heron", 6)
		until(4, 2)
		got := w.Store.Digests()
		bottest.Want(t, "digests", len(got), 1)
		if c := got[0].Content; !strings.Contains(c, "autumn release") || strings.Contains(c, "23000") || strings.Contains(c, "diabetes") {
			t.Errorf("the digest reads %q", c)
		}
	})
}

// A private chat has no digest, and a day of few words none either: no model is asked.
func TestDaysWithoutDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Config: nightly})
		until(9, 0)
		discuss(w, "few", memory.DigestLeast-1)
		w.Say("cmd", "alice", "/status") // no word of the group's
		for i := range 8 {
			m := bottest.Said(fmt.Sprint("p", i), "bob", "between us")
			m.ConversationID, m.ConversationType = "private", sessions.Private
			w.Post(m)
			synctest.Wait()
		}
		bottest.After(48 * time.Hour)
		bottest.Want(t, "digests", len(w.Store.Digests()), 0)
		bottest.Want(t, "requests", len(dayRequests(w.Model)), 0)
	})
}

// Days that ended while no process ran are summarized at the start, the oldest first, a week at most.
func TestDigestsCatchUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelfOfDays()
		w := bottest.Start(t, bottest.Setup{Shelf: shelf, Config: func(c *bot.Config) { nightly(c); c.DigestAt = "" }})
		until(9, 0)
		for i := range 9 {
			discuss(w, fmt.Sprintf("day %d", i), 5)
			bottest.After(24 * time.Hour)
		}
		w.Stop()
		bottest.Want(t, "digests without a time", len(shelf.Digests()), 0)
		began := time.Now().In(shanghai)
		w = bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "b", Config: nightly})
		var dates, wanted []string
		for _, m := range shelf.Digests() {
			dates = append(dates, m.CreatedAt.In(shanghai).Format(time.DateOnly))
		}
		for ago := memory.DigestDays; ago > 0; ago-- {
			wanted = append(wanted, began.AddDate(0, 0, -ago).Format(time.DateOnly))
		}
		bottest.Want(t, "digests", dates, wanted)
		w.Stop()
		bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "c", Config: nightly})
		bottest.After(time.Hour)
		bottest.Want(t, "digests after another start", len(shelf.Digests()), memory.DigestDays)
	})
}

// A failed model is no fault of the group: the day is tried again later, three times, and no turn waits.
func TestDigestRetriesAFailedModel(t *testing.T) {
	t.Parallel()
	answers := map[string]struct {
		answer   func(context.Context, llm.Request) (llm.Response, error)
		attempts int
		reason   string
	}{
		"refused": {func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{Usage: sessions.Usage{Prompt: 7}}, &llm.CallError{Class: llm.Denied, Err: errors.New("sk-key")}
		}, 3, "model error: denied"},
		"empty":  {func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(""), nil }, 3, "no usable answer"},
		"panics": {func(context.Context, llm.Request) (llm.Response, error) { panic("in the model") }, 3, "digest panicked"},
		"hangs":  {bottest.Hang, 3, "ran out of time"},
	}
	for name, c := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &bottest.Script{Summary: c.answer}
				w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: nightly})
				until(9, 0)
				date := time.Now().In(shanghai).Format(time.DateOnly)
				discuss(w, "heron", 6)
				until(4, 0)
				began, sent := time.Now(), len(w.Wire.Sends())
				w.Say("early", "bob", "good morning") // while the digest is under way
				bottest.Want(t, "waited", time.Since(began), 0)
				bottest.Want(t, "messages to the group", len(w.Wire.Sends()), sent+1)
				bottest.After(90 * time.Minute) // still the same day in UTC, by which spending is counted
				w.Store.Shelf.Mu.Lock()
				got := *w.Store.Day(bottest.Group, date)
				w.Store.Shelf.Mu.Unlock()
				bottest.Want(t, "attempts, done, reason", []any{got.Attempts, got.Done, got.Reason}, []any{c.attempts, false, c.reason})
				bottest.Want(t, "messages to the group", len(w.Wire.Sends()), sent+1)
				bottest.Want(t, "lines that say it is given up", len(w.Log.Lines(t, "Daily digest given up")), 1)
				if name == "refused" {
					bottest.Want(t, "spent", w.State(bottest.Group).SpentToday, 7*c.attempts)
				}
			})
		})
	}
}

// A failed attempt is made up for.
func TestDigestAfterAFailedModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: nightly})
		until(9, 0)
		discuss(w, "heron", 6)
		m.Mu.Lock()
		m.Summary = func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(""), nil }
		m.Mu.Unlock()
		until(4, 5)
		bottest.Want(t, "digests", len(w.Store.Digests()), 0)
		m.Mu.Lock()
		m.Summary = nil
		m.Mu.Unlock()
		bottest.After(memory.DigestRest)
		bottest.Want(t, "digests later", len(w.Store.Digests()), 1)
	})
}

// The days of several groups are summarized side by side. A slow one delays few others.
func TestDigestsSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(time.Minute)
			mu.Lock()
			now--
			mu.Unlock()
			return bottest.Text(bottest.GoodSummary), nil
		}}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: nightly})
		w.Store.Shelf.Portion = 100
		until(9, 0)
		for i := range 2 * bottest.DigestsAtOnce {
			for j := range memory.DigestLeast {
				msg := bottest.Said(fmt.Sprintf("m%d-%d", i, j), "alice", "about heron")
				msg.ConversationID = sessions.ConversationID(fmt.Sprint("room", i))
				w.Post(msg)
				synctest.Wait()
			}
		}
		until(4, 3)
		bottest.Want(t, "digests, and at once", []int{len(w.Store.Digests()), most}, []int{2 * bottest.DigestsAtOnce, bottest.DigestsAtOnce})
	})
}

// A session that has spent what such work may take in a day waits for the next one.
func TestDigestMindsTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			a := bottest.Text(bottest.GoodSummary)
			a.Usage = sessions.Usage{Prompt: 200, Completion: 100}
			return a, nil
		}}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: func(c *bot.Config) { nightly(c); c.DigestAt = "08:30"; c.Compaction.DailyTokens = 1000 }})
		until(9, 0)
		discuss(w, "one", 6)
		until(9, 0)
		discuss(w, "two", 6)
		bottest.Want(t, "spent of a quarter of 1000", w.State(bottest.Group).SpentToday, 300)
		w.Stop()
		w = bottest.Start(t, bottest.Setup{Shelf: w.Store.Shelf, Model: m, Name: "b", Config: func(c *bot.Config) { nightly(c); c.DigestAt = "00:00"; c.Compaction.DailyTokens = 1000 }})
		until(7, 0) // the next day in the group's time zone and in UTC
		bottest.Want(t, "digests within the budget", len(w.Store.Digests()), 1)
		until(8, 15)
		bottest.Want(t, "digests on the next day", len(w.Store.Digests()), 2)
	})
}

// Two replicas that both think the session is theirs leave one digest, and so does a process that dies in the middle.
func TestDigestOnceAmongReplicas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		var once sync.Once
		stopped := make(chan struct{})
		slow := &bottest.Script{Summary: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			once.Do(func() { close(stopped) })
			<-ctx.Done()
			return llm.Response{}, ctx.Err()
		}}
		a := bottest.Start(t, bottest.Setup{Shelf: shelf, Model: slow, Name: "a", Config: nightly})
		until(9, 0)
		discuss(a, "heron", 6)
		until(4, 1)
		<-stopped
		a.Stop() // in the middle of a digest
		bottest.Want(t, "attempts that were cut off", shelf.Day(bottest.Group, time.Now().In(shanghai).AddDate(0, 0, -1).Format(time.DateOnly)).Attempts, 0)
		b := bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "b", Config: nightly})
		c := bottest.Start(t, bottest.Setup{Shelf: shelf, Name: "c", Config: nightly})
		bottest.After(time.Hour)
		bottest.Want(t, "digests", len(shelf.Digests()), 1)
		bottest.Want(t, "requests", len(dayRequests(b.Model))+len(dayRequests(c.Model)), 1)
	})
}

// The usage of a digest is counted once, also when the process stops around the model's answer. A paid digest is stored.
func TestInterruptedDigestIsCountedOnce(t *testing.T) {
	t.Parallel()
	usage := sessions.Usage{Prompt: 200, Completion: 100}
	for name, c := range map[string]struct {
		stored  bool // the stop comes after the digest is stored
		fails   bool // the model's answer is an error
		digests int
	}{
		"answered":       {digests: 1},
		"refused":        {fails: true},
		"already stored": {stored: true, digests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reached, stopping := make(chan struct{}), make(chan struct{})
				var once sync.Once
				wait := func() { once.Do(func() { close(reached) }); <-stopping }
				m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
					if !c.stored {
						wait()
					}
					a := bottest.Text(bottest.GoodSummary)
					a.Usage = usage
					if c.fails {
						return llm.Response{Usage: usage}, &llm.CallError{Class: llm.Denied, Err: errors.New("denied")}
					}
					return a, nil
				}}
				w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: nightly})
				until(9, 0)
				discuss(w, "heron", 6)
				before := w.State(bottest.Group).SpentToday
				w.Store.Lose(func(op string) error {
					if c.stored && op == "store digest" {
						wait()
					}
					return nil
				})
				until(4, 0)
				<-reached
				ended := make(chan struct{})
				go func() { w.Stop(); close(ended) }()
				synctest.Wait()
				close(stopping)
				<-ended
				bottest.Want(t, "digests", len(w.Store.Digests()), c.digests)
				bottest.Want(t, "spent", w.State(bottest.Group).SpentToday-before, usage.Prompt+usage.Completion)
			})
		})
	}
}
