package turn

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/bot/sendfile"
	"ebb/bot/turn/answer"
	"ebb/bot/turn/choice"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/llm"
	"ebb/sessions/memstore"
	"ebb/sessions/serial"
)

const replica = "r1"

var key = sessions.NewKey("robot", "c1", "")

// world is a runner over a store in memory, with a model and commands that a test scripts. It has no other part of the gateway.
type world struct {
	t      *testing.T
	store  *memstore.Store
	runner *Runner
	model  func(ctx context.Context, r llm.Request) (llm.Response, error)

	mu     sync.Mutex
	asked  []string // the last message of each request
	said   []string // texts of the replies
	kinds  []choice.Kind
	charge int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: memstore.New(time.Minute)}
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	leases := lease.NewHolder(w.store.Leases, replica, time.Minute)
	if err := leases.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	window := compaction.Window{Context: 16000, Reserve: 4000, Threshold: 4000, Share: 0.5, FlushRatio: 0.9, Summary: 400}
	current := reload.New(reload.Values{Compaction: compaction.Settings{Enabled: true, Window: window, Policy: compaction.Policies["token_budget"]}})
	p := &parts.Shared{
		Leases: leases, Now: leases.Now, Current: current, Languages: wording.Languages{Preset: "en", Assigned: func(sessions.ConversationID) string { return "" }}, Location: time.UTC, Counter: counter,
		Draining: make(chan struct{}), CommitTimeout: time.Second,
	}
	views, err := view.New(p, w.store.Turns, nil, command.Commands, view.Options{Outside: chat.NoTools{}})
	if err != nil {
		t.Fatal(err)
	}
	w.runner = New(Config{
		Shared: p, Views: views, Stores: w.stores(), Model: w, Upkeep: w, Commands: scripted{},
		Display: chat.NoDisplay{}, Media: answer.NoMedia{}, Files: sendfile.Desk{Store: noFiles{}, Refusal: func(sessions.RobotCode) error { return sendfile.ErrOff }},
		MaxMerged: 20, MaxToolRounds: 3, MaxTurns: 4, StaleAfter: time.Hour, TurnTimeout: time.Minute,
	})
	boxes := serial.NewMailboxes(t.Context(), func(context.Context, sessions.Key) (bool, error) { return false, nil })
	w.runner.Connect(boxes, boxes, w, w)
	return w
}

// noFiles has no files of earlier calls; no test stores one.
type noFiles struct{ sendfile.Store }

func (noFiles) Kept(context.Context, sessions.Key, []int64) ([]sessions.File, error) { return nil, nil }

func (w *world) stores() Stores {
	s := w.store
	return Stores{Turns: s.Turns, Inbox: s.Inbox, Cards: s.Cards, Outbox: s.Outbox, Limits: s.Limits, Search: noMemory{}}
}

// says stores a message of a member.
func (w *world) says(by sessions.UserID, text string) {
	w.t.Helper()
	m := sessions.Message{
		RobotCode: "robot", ConversationID: "c1", ConversationType: sessions.Group, ID: sessions.MessageID(fmt.Sprint(by, text)),
		SenderID: by, SenderNick: string(by), StaffID: by, Text: text, SentAt: time.Now(),
	}
	if _, err := w.store.Inbox.Accept(w.t.Context(), replica, key, m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pending() []sessions.Event {
	w.t.Helper()
	list, err := w.store.Inbox.Pending(w.t.Context(), key, 10)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	w.mu.Lock()
	w.asked = append(w.asked, r.Messages[len(r.Messages)-1].Content)
	w.mu.Unlock()
	return w.model(ctx, r)
}

// The ports of the outbox, of upkeep and of the statistics.

func (w *world) Resume(context.Context, sessions.Lease) error { return nil }
func (w *world) Backpressured(sessions.Key) bool              { return false }
func (w *world) Queued(sessions.Key, bool) bool               { return false }
func (w *world) AwaitSent(context.Context, sessions.Key, sessions.Target, time.Duration) bool {
	return true
}
func (w *world) Invalidate(sessions.Key)                                 {}
func (w *world) Due(sessions.View, int) bool                             { return false }
func (w *world) FactsDue(sessions.Session) bool                          { return false }
func (w *world) Busy(sessions.Key) bool                                  { return false }
func (w *world) TurnBegun(sessions.Key, []sessions.Event)                {}
func (w *world) ToolCalled(string, answer.ToolOutcome)                   {}
func (w *world) LimitReached(sessions.Limit)                             {}
func (w *world) CallsDecided(string, int)                                {}
func (w *world) ReportDoubted(string)                                    {}
func (w *world) RequestRefused(answer.Refused)                           {}
func (w *world) Charge(context.Context, sessions.Key, sessions.Spending) { w.charge++ }
func (w *world) Inline(context.Context, sessions.Lease, int, func(sessions.View) sessions.Trigger) error {
	return nil
}

func (w *world) Send(_ context.Context, _ sessions.Lease, replies []sessions.Outgoing, then func()) {
	for _, o := range replies {
		w.said = append(w.said, o.Reply.Text)
	}
	then()
}

func (w *world) TurnCommitted(_ sessions.Key, kind choice.Kind, _ []sessions.Event, _ time.Duration, _ time.Time, _ bool) {
	w.kinds = append(w.kinds, kind)
}

// scripted answers each command with its words. "stop" ends the messages of its sender.
type scripted struct{}

func (scripted) Command(_ context.Context, t *view.CommandTurn) string {
	return "done: " + t.Asked.Content
}

func (scripted) Stops(e sessions.Event, asked []sessions.Event) (own []sessions.Event) {
	for _, one := range asked {
		if e.Content == "stop" && one.SenderID == e.SenderID {
			own = append(own, one)
		}
	}
	return own
}

func (scripted) Stopped(_ context.Context, s view.Stopped) string {
	return fmt.Sprintf("stopped %q, others: %t", s.Asked[0].Content, s.Others)
}

func (scripted) May(sessions.Event, string) bool { return true }
func (scripted) Decide(context.Context, sessions.Lease, sessions.Event) ([]sessions.Approval, error) {
	return nil, nil
}
func (scripted) Work(sessions.Event) sessions.Work             { return "" }
func (scripted) Confirmations(context.Context, *sessions.View) {}

// noMemory has no facts.
type noMemory struct{ memory.Searcher }

func (noMemory) Search(context.Context, memory.Reader, memory.Query) ([]memory.Hit, error) {
	return nil, nil
}

func says(text string) (llm.Response, error) {
	return llm.Response{Text: text, Finish: llm.FinishStop, Model: "fake"}, nil
}

func (w *world) run() {
	w.t.Helper()
	if more, err := w.runner.RunTurn(w.t.Context(), key); more || err != nil {
		w.t.Fatalf("more: %t, error: %v", more, err)
	}
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// Messages that wait together get one answer, which is committed and sent.
func TestTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model = func(context.Context, llm.Request) (llm.Response, error) { return says("fine") }
	w.says("ann", "how are you?")
	w.says("bob", "and you?")
	w.run()
	check(t, "replies", w.said, []string{"fine"})
	check(t, "kinds", w.kinds, []choice.Kind{choice.Ask})
	check(t, "waiting messages", len(w.pending()), 0)
	check(t, "last message of each request", w.asked, []string{"bob(bob): and you?"})
}

// A command is answered by itself, without the model.
func TestTurnOfACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says("ann", "/status")
	w.run()
	check(t, "replies", w.said, []string{"done: /status"})
	check(t, "requests", len(w.asked), 0)
}

// A member's stop ends the own messages. Other people's are answered at once, in their own turn.
func TestStopLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model = func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if len(w.asked) > 1 {
			return says("for bob")
		}
		w.says("ann", "stop")
		w.runner.Wake(key)
		<-ctx.Done()
		return llm.Response{Text: "half"}, ctx.Err()
	}
	w.says("ann", "a long story")
	w.says("bob", "the time?")
	w.run()
	check(t, "replies", w.said, []string{`stopped "a long story", others: true`, "for bob"})
	check(t, "last message of each request", w.asked, []string{"bob(bob): the time?", "bob(bob): the time?"})
	check(t, "waiting messages", len(w.pending()), 0)
}

// A failure of the model is an answer. An error of no model leaves the messages waiting, and costs them no attempt.
func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says("ann", "hello")
	w.model = func(context.Context, llm.Request) (llm.Response, error) { return llm.Response{}, context.Canceled }
	if _, err := w.runner.RunTurn(t.Context(), key); err == nil || len(w.said) > 0 {
		t.Errorf("error %v, replies %q: the turn must run again", err, w.said)
	}
	left := w.pending()
	if len(left) != 1 || left[0].Attempts != 0 || w.charge != 1 {
		t.Errorf("left %+v, charged %d times", left, w.charge)
	}
	w.model = func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: fmt.Errorf("key sk-1 is unknown")}
	}
	w.run()
	check(t, "replies", w.said, []string{wording.Say(wording.Denied, "en")})
}

// A panic costs the messages of its turn an attempt. After three they are set aside with a word to their sender.
func TestPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says("ann", "poison")
	w.model = func(context.Context, llm.Request) (llm.Response, error) { panic("poison") }
	for range choice.MaxBroken {
		func() {
			defer func() { _ = recover() }()
			w.run()
		}()
	}
	at := w.pending()[0].CreatedAt.UTC().Format("01-02 15:04")
	w.run()
	check(t, "requests", len(w.asked), choice.MaxBroken)
	check(t, "kinds", w.kinds, []choice.Kind{choice.Dead})
	check(t, "replies", w.said, []string{wording.Say(wording.Dead, "en", at)})
}
