package bot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/bot/upkeep"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
)

// day is what a store knows of one conversation's day.
type day struct {
	key  sessions.Key
	date string
}

type dayState struct {
	attempts int
	done     bool
	reason   string
	at       time.Time
}

// DigestsDue and the methods from here on keep digests as the database does. A list has two days at the most where a
// test does not say otherwise, so that there are several.
func (s *store) DigestsDue(ctx context.Context, owner sessions.ReplicaID, days []memory.Day, after memory.DigestDue) ([]memory.DigestDue, error) {
	return do(s, "digests due", func() ([]memory.DigestDue, error) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		var out []memory.DigestDue
		for _, d := range days {
			for _, key := range slices.Sorted(maps.Keys(s.flushed)) {
				st, err := s.mem.Session(ctx, key)
				if err != nil || st.ConversationType != sessions.Group || (st.Lease.Owner != "" && st.Lease.Owner != owner) {
					continue
				}
				behind := d.Date > after.Date || d.Date == after.Date && key > after.Key
				state := s.day(key, d.Date)
				if !behind || state.done || state.attempts >= memory.DigestAttempts || time.Since(state.at) < memory.DigestRest {
					continue
				}
				due := memory.DigestDue{Key: key, Day: d, LastSeq: st.LastSeq, Attempts: state.attempts}
				if len(userMessages(s.said(ctx, due))) < memory.DigestLeast {
					state.done = true
				} else if len(out) < max(2, s.portion) {
					out = append(out, due)
				}
			}
		}
		return out, nil
	})
}

// day is the state of a day; the caller holds the shelf's mutex.
func (s *shelf) day(key sessions.Key, date string) *dayState {
	if s.days == nil {
		s.days = map[day]*dayState{}
	}
	d := s.days[day{key, date}]
	if d == nil {
		d = &dayState{}
		s.days[day{key, date}] = d
	}
	return d
}

func (s *shelf) said(ctx context.Context, d memory.DigestDue) []sessions.Event {
	return slices.DeleteFunc(s.log(ctx, d.Key), func(e sessions.Event) bool {
		return e.CreatedAt.Before(d.From) || !e.CreatedAt.Before(d.To) || e.Role == sessions.RoleTool || e.Content == ""
	})
}

func (s *store) DigestEvents(ctx context.Context, d memory.DigestDue, after int64, limit int) ([]sessions.Event, error) {
	return do(s, "digest events", func() ([]sessions.Event, error) {
		events := slices.DeleteFunc(s.said(ctx, d), func(e sessions.Event) bool { return e.Seq <= after })
		return events[:min(limit, len(events))], nil
	})
}

func (s *store) StoreDigest(ctx context.Context, l sessions.Lease, d memory.Digest) (int64, error) {
	return do(s, "store digest", func() (int64, error) {
		if _, err := s.mem.Begin(ctx, l, 0); err != nil {
			return 0, err
		}
		if err := s.mem.Log(ctx, l, sessions.LogEntry{Outcome: upkeep.OutcomeNothing, Trigger: "digest", Usage: d.Usage}); err != nil {
			return 0, err
		}
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		state := s.day(l.Key, d.Date)
		if state.done {
			return 0, sessions.ErrConflict
		}
		if state.done = true; d.Content == "" {
			return 0, nil
		}
		id := int64(len(s.memories) + 1)
		s.memories = append(s.memories, memory.Memory{
			ID: id, Scope: d.Scope, ScopeID: d.ScopeID, Kind: memory.KindDigest, Content: d.Content, SourceSession: l.Key,
			SourceGroup: d.SourceGroup, StartSeq: d.StartSeq, EndSeq: d.EndSeq, CreatedAt: d.At,
		})
		return id, nil
	})
}

func (s *store) PutOffDigest(ctx context.Context, l sessions.Lease, f memory.DigestFailure) error {
	_, err := do(s, "put off digest", func() (none, error) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		state := s.day(l.Key, f.Date)
		if state.reason, state.at = f.Reason, time.Now(); f.Counts {
			state.attempts++
		}
		return none{}, s.mem.Log(ctx, l, sessions.LogEntry{Outcome: upkeep.OutcomeNothing, Trigger: "digest", Usage: f.Usage})
	})
	return err
}

func (s *store) DigestsOf(_ context.Context, r memory.Reader, from, to time.Time) ([]memory.Memory, error) {
	return do(s, "digests of", func() ([]memory.Memory, error) {
		return slices.DeleteFunc(s.digests(), func(m memory.Memory) bool {
			return !readable(m, r) || m.CreatedAt.Before(from) || !m.CreatedAt.Before(to)
		}), nil
	})
}

// digests lists what was stored.
func (s *shelf) digests() []memory.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.memories), func(m memory.Memory) bool { return m.Kind != memory.KindDigest })
}

// shanghai is a zone whose days are not those of UTC.
var shanghai = time.FixedZone("CST", 8*3600)

func nightly(c *Config) { c.DigestAt, c.Location = "04:00", shanghai }

// until waits for a time of day in Shanghai, and for what happens then.
func until(hour, minute int) {
	now := time.Now().In(shanghai)
	t := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, shanghai)
	if !t.After(now) {
		t = t.AddDate(0, 0, 1)
	}
	after(time.Until(t))
}

// chat says n things in the group.
func (w *world) chat(about string, n int) {
	w.t.Helper()
	for i := range n {
		w.say(fmt.Sprint(about, i), "alice", fmt.Sprintf("about %s, point %d", about, i))
	}
}

// dayRequests are the requests for digests.
func (m *script) dayRequests() []llm.Request {
	return slices.DeleteFunc(m.requests("summary"), func(r llm.Request) bool { return !strings.Contains(r.Messages[0].Content, "What happened") })
}

func TestDailyDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: nightly})
		until(9, 0)
		date := time.Now().In(shanghai).Format(time.DateOnly)
		w.chat("heron", 6)
		w.say("cmd", "alice", "/status")
		until(0, 30) // before the time of the digest, and of the next day
		w.chat("osprey", 6)
		until(3, 59)
		want(t, "digests before the time", len(w.store.digests()), 0)
		sent := len(w.wire.sends())
		until(4, 2)
		got := w.store.digests()
		want(t, "digests", len(got), 1)
		m := got[0]
		want(t, "scope", []any{m.Scope, m.ScopeID, m.SubjectID, m.SourceSession}, []any{memory.ScopeGroup, group, "", group})
		want(t, "range", []int64{m.StartSeq, m.EndSeq}, []int64{1, 12})
		if !strings.HasPrefix(m.Content, "# Daily digest of "+date) || !strings.Contains(m.Content, "osprey") {
			t.Errorf("the digest reads %q", m.Content)
		}
		asked := w.model.dayRequests()
		want(t, "requests", len(asked), 1)
		asked1 := lastWords(asked[0])
		if !strings.Contains(asked1, "about heron, point 5") || strings.Contains(asked1, "about osprey") || strings.Contains(asked1, "/status") || !strings.HasPrefix(asked1, "<<<transcript") {
			t.Errorf("the model was shown %q", asked1)
		}
		want(t, "messages to the group", len(w.wire.sends()), sent)
		lines := w.log.lines(t, "Daily digest written")
		if len(lines) != 1 || lines[0]["day"] != date || lines[0]["session"] != string(group) {
			t.Errorf("log lines %v", lines)
		}
		text, err := show.Get(t.Context(), w.store, memory.Reader{Key: group, Robot: "robot", Conversation: "c1"}, "memory/group/"+date+".md", 1, show.LogReader{Location: shanghai})
		if err != nil || !strings.Contains(text, "osprey") {
			t.Errorf("its path reads %q, %v", text, err)
		}
		until(4, 2)
		want(t, "digests a day later", len(w.store.digests()), 2)
		until(4, 2)
		want(t, "digests after a day of silence", len(w.store.digests()), 2)
	})
}

// A day's digest leaves out a person's pay and health, for the whole group reads it.
func TestDigestOmitsPersonalFacts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
			return text(goodSummary + "\n- 李雷的月薪是 23000 元\n- Bob was diagnosed with diabetes"), nil
		}}
		w := start(t, setup{model: m, config: nightly})
		until(9, 0)
		w.chat("heron", 6)
		until(4, 2)
		got := w.store.digests()
		want(t, "digests", len(got), 1)
		if c := got[0].Content; !strings.Contains(c, "autumn release") || strings.Contains(c, "23000") || strings.Contains(c, "diabetes") {
			t.Errorf("the digest reads %q", c)
		}
	})
}

// A private chat has no digest, and a day of few words none either: no model is asked.
func TestDaysWithoutDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: nightly})
		until(9, 0)
		w.chat("few", memory.DigestLeast-1)
		w.say("cmd", "alice", "/status") // no word of the group's
		for i := range 8 {
			m := said(fmt.Sprint("p", i), "bob", "between us")
			m.ConversationID, m.ConversationType = "private", sessions.Private
			w.post(m)
			synctest.Wait()
		}
		after(48 * time.Hour)
		want(t, "digests", len(w.store.digests()), 0)
		want(t, "requests", len(w.model.dayRequests()), 0)
	})
}

// Days that ended while no process ran are summarized at the start, the oldest first, a week at most.
func TestDigestsCatchUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		w := start(t, setup{shelf: shelf, config: func(c *Config) { nightly(c); c.DigestAt = "" }})
		until(9, 0)
		for i := range 9 {
			w.chat(fmt.Sprintf("day %d", i), 5)
			after(24 * time.Hour)
		}
		w.stop()
		want(t, "digests without a time", len(shelf.digests()), 0)
		began := time.Now().In(shanghai)
		w = start(t, setup{shelf: shelf, name: "b", config: nightly})
		var dates, wanted []string
		for _, m := range shelf.digests() {
			dates = append(dates, m.CreatedAt.In(shanghai).Format(time.DateOnly))
		}
		for ago := memory.DigestDays; ago > 0; ago-- {
			wanted = append(wanted, began.AddDate(0, 0, -ago).Format(time.DateOnly))
		}
		want(t, "digests", dates, wanted)
		w.stop()
		start(t, setup{shelf: shelf, name: "c", config: nightly})
		after(time.Hour)
		want(t, "digests after another start", len(shelf.digests()), memory.DigestDays)
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
		"empty":  {func(context.Context, llm.Request) (llm.Response, error) { return text(""), nil }, 3, "no usable answer"},
		"panics": {func(context.Context, llm.Request) (llm.Response, error) { panic("in the model") }, 3, "digest panicked"},
		"hangs":  {hang, 3, "ran out of time"},
	}
	for name, c := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &script{summary: c.answer}
				w := start(t, setup{model: m, config: nightly})
				until(9, 0)
				date := time.Now().In(shanghai).Format(time.DateOnly)
				w.chat("heron", 6)
				until(4, 0)
				began, sent := time.Now(), len(w.wire.sends())
				w.say("early", "bob", "good morning") // while the digest is under way
				want(t, "waited", time.Since(began), 0)
				want(t, "messages to the group", len(w.wire.sends()), sent+1)
				after(90 * time.Minute) // still the same day in UTC, by which spending is counted
				w.store.shelf.mu.Lock()
				got := *w.store.day(group, date)
				w.store.shelf.mu.Unlock()
				want(t, "attempts, done, reason", []any{got.attempts, got.done, got.reason}, []any{c.attempts, false, c.reason})
				want(t, "messages to the group", len(w.wire.sends()), sent+1)
				want(t, "lines that say it is given up", len(w.log.lines(t, "Daily digest given up")), 1)
				if name == "refused" {
					want(t, "spent", w.state(group).SpentToday, 7*c.attempts)
				}
			})
		})
	}
}

// A failed attempt is made up for.
func TestDigestAfterAFailedModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{}
		w := start(t, setup{model: m, config: nightly})
		until(9, 0)
		w.chat("heron", 6)
		m.mu.Lock()
		m.summary = func(context.Context, llm.Request) (llm.Response, error) { return text(""), nil }
		m.mu.Unlock()
		until(4, 5)
		want(t, "digests", len(w.store.digests()), 0)
		m.mu.Lock()
		m.summary = nil
		m.mu.Unlock()
		after(memory.DigestRest)
		want(t, "digests later", len(w.store.digests()), 1)
	})
}

// The days of several groups are summarized side by side. A slow one delays few others.
func TestDigestsSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		m := &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(time.Minute)
			mu.Lock()
			now--
			mu.Unlock()
			return text(goodSummary), nil
		}}
		w := start(t, setup{model: m, config: nightly})
		w.store.shelf.portion = 100
		until(9, 0)
		for i := range 2 * digestsAtOnce {
			for j := range memory.DigestLeast {
				msg := said(fmt.Sprintf("m%d-%d", i, j), "alice", "about heron")
				msg.ConversationID = sessions.ConversationID(fmt.Sprint("room", i))
				w.post(msg)
				synctest.Wait()
			}
		}
		until(4, 3)
		want(t, "digests, and at once", []int{len(w.store.digests()), most}, []int{2 * digestsAtOnce, digestsAtOnce})
	})
}

// A session that has spent what such work may take in a day waits for the next one.
func TestDigestMindsTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
			a := text(goodSummary)
			a.Usage = sessions.Usage{Prompt: 200, Completion: 100}
			return a, nil
		}}
		w := start(t, setup{model: m, config: func(c *Config) { nightly(c); c.DigestAt = "08:30"; c.Compaction.DailyTokens = 1000 }})
		until(9, 0)
		w.chat("one", 6)
		until(9, 0)
		w.chat("two", 6)
		want(t, "spent of a quarter of 1000", w.state(group).SpentToday, 300)
		w.stop()
		w = start(t, setup{shelf: w.store.shelf, model: m, name: "b", config: func(c *Config) { nightly(c); c.DigestAt = "00:00"; c.Compaction.DailyTokens = 1000 }})
		until(7, 0) // the next day in the group's time zone and in UTC
		want(t, "digests within the budget", len(w.store.digests()), 1)
		until(8, 15)
		want(t, "digests on the next day", len(w.store.digests()), 2)
	})
}

// Two replicas that both think the session is theirs leave one digest, and so does a process that dies in the middle.
func TestDigestOnceAmongReplicas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		var once sync.Once
		stopped := make(chan struct{})
		slow := &script{summary: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			once.Do(func() { close(stopped) })
			<-ctx.Done()
			return llm.Response{}, ctx.Err()
		}}
		a := start(t, setup{shelf: shelf, model: slow, name: "a", config: nightly})
		until(9, 0)
		a.chat("heron", 6)
		until(4, 1)
		<-stopped
		a.stop() // in the middle of a digest
		want(t, "attempts that were cut off", shelf.day(group, time.Now().In(shanghai).AddDate(0, 0, -1).Format(time.DateOnly)).attempts, 0)
		b := start(t, setup{shelf: shelf, name: "b", config: nightly})
		c := start(t, setup{shelf: shelf, name: "c", config: nightly})
		after(time.Hour)
		want(t, "digests", len(shelf.digests()), 1)
		want(t, "requests", len(b.model.dayRequests())+len(c.model.dayRequests()), 1)
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
				m := &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
					if !c.stored {
						wait()
					}
					a := text(goodSummary)
					a.Usage = usage
					if c.fails {
						return llm.Response{Usage: usage}, &llm.CallError{Class: llm.Denied, Err: errors.New("denied")}
					}
					return a, nil
				}}
				w := start(t, setup{model: m, config: nightly})
				until(9, 0)
				w.chat("heron", 6)
				before := w.state(group).SpentToday
				w.store.lose(func(op string) error {
					if c.stored && op == "store digest" {
						wait()
					}
					return nil
				})
				until(4, 0)
				<-reached
				ended := make(chan struct{})
				go func() { w.stop(); close(ended) }()
				synctest.Wait()
				close(stopping)
				<-ended
				want(t, "digests", len(w.store.digests()), c.digests)
				want(t, "spent", w.state(group).SpentToday-before, usage.Prompt+usage.Completion)
			})
		})
	}
}

// userMessages are the events that people sent.
func userMessages(events []sessions.Event) []sessions.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e sessions.Event) bool { return e.Role != sessions.RoleUser })
}
