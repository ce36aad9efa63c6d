package bottest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"ebb/bot"
	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/bot/off"
	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// Small is a window in which a conversation is compacted after a few dozen short turns.
var Small = compaction.Window{Context: 16000, Reserve: 4000, Threshold: 4000, Share: 0.5, FlushRatio: 0.9, Summary: 400}

// SmallSettings are the default policy in that window.
var SmallSettings = compaction.Settings{Enabled: true, Window: Small, Policy: compaction.Policies["token_budget"]}

// World is one bot with everything around it.
type World struct {
	T     *testing.T
	Store *Store
	Wire  *Wire
	Model *Script
	Bot   *bot.Bot
	Views *view.Builder // as the bot has one
	Log   *logBuffer
	Stop  func() // as a signal does; waits for the end
	Begin func() // the signal alone
	Ended chan error

	Name   sessions.ReplicaID
	Values reload.Values // as it began
	Gather func() ([]*dto.MetricFamily, error)
}

// Figure is a number of the restart report.
func (w *World) Figure(name string) int { return int(Series(w.T, w, "ebb_restart_report", name)) }

// Gauge is a number of this moment.
func (w *World) Gauge(name string) int { return int(Series(w.T, w, name)) }

// Setup are the parts of a world that a test brings along.
type Setup struct {
	Shelf  *Shelf
	Model  *Script
	Wire   *Wire
	Name   sessions.ReplicaID
	Config func(*bot.Config)
}

// Start runs a bot until the test ends. It must be called in a synctest bubble.
func Start(t *testing.T, s Setup) *World {
	t.Helper()
	if s.Shelf == nil {
		s.Shelf = NewShelf()
	}
	if s.Model == nil {
		s.Model = &Script{}
	}
	if s.Wire == nil {
		s.Wire = &Wire{}
	}
	s.Wire.Running = make(chan struct{})
	if s.Name == "" {
		s.Name = "a"
	}
	w := &World{T: t, Store: s.Shelf.store(), Wire: s.Wire, Model: s.Model, Log: &logBuffer{}, Ended: make(chan error, 1)}
	cfg := bot.Config{
		Stores: PortsOf(w.Store), Memory: MemoryOf(w.Store), Transport: w.Wire, Counter: Counter, Replica: s.Name, LeaseTTL: s.Shelf.ttl, SweepEvery: s.Shelf.ttl / 5,
		Tools: []chat.Tool{HandTool{Name: "look", Reads: true}, HandTool{Name: "act"}}, Values: reload.Values{Model: w.Model, Compaction: SmallSettings},
		Metrics: prometheus.NewRegistry(), Remember: view.Remember{PinnedTokens: 600},
		Elector: w.Store, Parts: off.Parts(),
	}
	w.Gather = cfg.Metrics.(*prometheus.Registry).Gather
	if s.Config != nil {
		s.Config(&cfg)
	}
	b, err := bot.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Bot, w.Views, w.Name, w.Values = b, NewViews(t, cfg), s.Name, cfg.Values
	ctx, cancel := context.WithCancel(zerolog.New(w.Log).WithContext(t.Context()))
	go func() { w.Ended <- b.Run(ctx) }()
	<-w.Wire.Running
	w.Begin = cancel
	w.Stop = sync.OnceFunc(func() {
		cancel()
		if err := <-w.Ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(w.Stop)
	synctest.Wait()
	return w
}

// NewViews makes the builder of requests of a bot with this configuration.
func NewViews(t interface{ Fatal(...any) }, cfg bot.Config) *view.Builder {
	current := reload.New(cfg.Values)
	v, err := view.New(&parts.Shared{
		Now: time.Now, Current: current, Languages: wording.Languages{Preset: cmp.Or(cfg.Language, "zh"), Assigned: current.Language},
		Location: cmp.Or(cfg.Location, time.UTC), Counter: cmp.Or(cfg.Counter, Counter), CommitTimeout: cmp.Or(cfg.CommitTimeout, 5*time.Second),
	}, cfg.Stores.Turns, cfg.Memory.Facts, command.Commands, view.Options{Tools: cfg.Tools, Outside: cmp.Or[chat.Toolbox](cfg.Outside, chat.NoTools{}), SchemaTokens: cfg.SchemaTokens, Finder: cfg.Finder, Name: cmp.Or(cfg.Name, "Ebb"), Prompt: cfg.Prompt, Remember: cfg.Remember})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Said makes a message of a group member, by id and nick.
func Said(id, who, words string) sessions.Message {
	return sessions.Message{
		RobotCode: "robot", ConversationID: "c1", ConversationType: sessions.Group, ConversationTitle: "ops", ID: sessions.MessageID(id),
		SenderID: sessions.UserID("u-" + who), StaffID: sessions.UserID("u-" + who), SenderNick: who, Kind: "text", Text: words,
		Webhook: "https://oapi.dingtalk.com/robot/sendBySession",
	}
}

// Reminding makes a message of a reminder that a group member set: it has no webhook.
func Reminding(id, who, words string) sessions.Message {
	m := Said(id, who, words)
	m.Webhook = ""
	m.Scheduled = &sessions.Scheduled{ID: 1, Kind: sessions.Remind, DueAt: time.Now()}
	return m
}

// Group is the session of said.
var Group = sessions.NewKey("robot", "c1", "")

// Post hands a message in, and fails the test where it is not accepted.
func (w *World) Post(m sessions.Message) {
	w.T.Helper()
	if err := w.Wire.Accept(w.T.Context(), m); err != nil {
		w.T.Fatalf("accept %s: %v", m.ID, err)
	}
}

// Say posts words and waits until everything that follows from them is done that needs no clock.
func (w *World) Say(id, who, words string) {
	w.T.Helper()
	w.Post(Said(id, who, words))
	synctest.Wait()
}

// After lets time pass and everything settle.
func After(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// State is the session's row, with the flush state.
func (w *World) State(key sessions.Key) sessions.Session {
	w.T.Helper()
	s, err := w.Store.Mem.Sessions.Session(w.T.Context(), key)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

// Want fails the test unless got equals want, both printed.
func Want[T any](tb testing.TB, what string, got, wanted T) {
	tb.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", wanted); g != w {
		tb.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// SmallOf returns the settings of a policy in the small window.
func SmallOf(policy string) compaction.Settings {
	return compaction.Settings{Enabled: true, Window: Small, Policy: compaction.Policies[policy]}
}

// Counter is loaded once: its table takes a second under the race detector.
var Counter = func() *tokens.Counter {
	c, err := tokens.NewCounter()
	if err != nil {
		panic(err)
	}
	return c
}()

// WithRoot has the administrator root.
func WithRoot(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }
