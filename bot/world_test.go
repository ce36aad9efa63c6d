package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/sessions"
)

// small is a window in which a conversation is compacted after a few dozen short turns.
var small = compaction.Window{Context: 16000, Reserve: 4000, Threshold: 4000, Share: 0.5, FlushRatio: 0.9, Summary: 400}

// smallSettings are the default policy in that window.
var smallSettings = compaction.Settings{Enabled: true, Window: small, Policy: compaction.Policies["token_budget"]}

// wire is a transport without a network: tests decide the arrivals and see the replies.
type wire struct {
	mu      sync.Mutex
	accept  chat.Accept
	sent    []sessions.Outgoing
	at      time.Time                                                         // time of the last message
	send    func(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) // nil: everything arrives
	running chan struct{}
}

func (w *wire) Run(ctx context.Context, accept chat.Accept) error {
	w.mu.Lock()
	w.accept = accept
	w.mu.Unlock()
	close(w.running)
	<-ctx.Done()
	return nil
}

func (w *wire) Send(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) {
	w.mu.Lock()
	w.sent, w.at = append(w.sent, o), time.Now()
	send := w.send
	w.mu.Unlock()
	if send != nil {
		return send(ctx, o)
	}
	return chat.Sent{Via: "webhook", Part: 1}, nil
}

func (w *wire) Ready() bool { return true }

// sends is what was tried to send so far.
func (w *wire) sends() []sessions.Outgoing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

func (w *wire) lastAt() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.at }

// texts is what was tried to send, as people read it.
func (w *wire) texts() []string {
	var out []string
	for _, o := range w.sends() {
		out = append(out, o.Reply.Text)
	}
	return out
}

// script is a model that answers from functions, one for each kind of request, and keeps what it was asked.
type script struct {
	mu                   sync.Mutex
	asked                []llm.Request
	chat, flush, summary func(ctx context.Context, r llm.Request) (llm.Response, error)
}

func kindOfRequest(r llm.Request) string {
	switch {
	case r.Force != "":
		return "flush"
	case len(r.Tools) == 0:
		return "summary"
	}
	return "chat"
}

func (m *script) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	r.Messages = slices.Clone(r.Messages)
	m.mu.Lock()
	m.asked = append(m.asked, r)
	n := len(m.asked)
	f, kind := m.chat, kindOfRequest(r)
	switch kind {
	case "flush":
		f = m.flush
	case "summary":
		f = m.summary
	}
	m.mu.Unlock()
	if f != nil {
		return f(ctx, r)
	}
	switch kind {
	case "flush":
		return saveCall(fmt.Sprintf("fact number %d", n)), nil
	case "summary":
		return llm.Response{Text: goodSummary, Finish: llm.FinishStop, Model: "fake"}, nil
	}
	return text("re: " + lastWords(r)), nil
}

// goodSummary passes the gate with any text.
const goodSummary = "## State\nAlice and Bob planned the autumn release. Carol owns the database move, due on 3 November; Dave reviews it. " +
	"The staging cluster is called heron, the production one osprey. Open: who writes the announcement, and whether the old API stays until spring."

func text(s string) llm.Response { return llm.Response{Text: s, Finish: llm.FinishStop, Model: "fake"} }

func calls(cs ...sessions.ToolCall) llm.Response {
	return llm.Response{ToolCalls: cs, Finish: llm.FinishTools, Model: "fake"}
}

func saveCall(facts ...string) llm.Response {
	var list []map[string]string
	for _, f := range facts {
		list = append(list, map[string]string{"content": f, "kind": "fact"})
	}
	args, err := json.Marshal(map[string]any{"facts": list})
	if err != nil {
		panic(err)
	}
	return calls(sessions.ToolCall{ID: "f1", Name: "memory_save", Arguments: string(args)})
}

// lastWords is the last message of a request.
func lastWords(r llm.Request) string { return r.Messages[len(r.Messages)-1].Content }

// requests lists what was asked of one kind.
func (m *script) requests(kind string) []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []llm.Request
	for _, r := range m.asked {
		if kindOfRequest(r) == kind {
			out = append(out, r)
		}
	}
	return out
}

// handTool is a tool that runs a function; it counts as having effects unless reads is set.
type handTool struct {
	name  string
	reads bool
	f     func(ctx context.Context, in chat.ToolInput) (string, error)
}

func (h handTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: h.name, Description: "does " + h.name, Schema: map[string]any{"type": "object"}}
}

func (h handTool) Repeatable() bool { return h.reads }

func (h handTool) Call(ctx context.Context, in chat.ToolInput) (string, error) {
	if h.f == nil {
		return "done", nil
	}
	return h.f(ctx, in)
}

// world is one bot with everything around it.
type world struct {
	t     *testing.T
	store *store
	wire  *wire
	model *script
	bot   *Bot
	log   *logBuffer
	stop  func() // as a signal does; waits for the end
	begin func() // the signal alone
	ended chan error

	gather func() ([]*dto.MetricFamily, error)
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lines lists the log's lines with a message.
func (l *logBuffer) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for line := range strings.SplitSeq(strings.TrimSpace(l.b.String()), "\n") {
		if line == "" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("log line is not JSON: %v: %s", err, line)
		}
		if m["message"] == message {
			out = append(out, m)
		}
	}
	return out
}

// setup are the parts of a world that a test brings along.
type setup struct {
	shelf  *shelf
	model  *script
	wire   *wire
	name   sessions.ReplicaID
	config func(*Config)
}

// start runs a bot until the test ends. It must be called in a synctest bubble.
func start(t *testing.T, s setup) *world {
	t.Helper()
	if s.shelf == nil {
		s.shelf = newShelf()
	}
	if s.model == nil {
		s.model = &script{}
	}
	if s.wire == nil {
		s.wire = &wire{}
	}
	s.wire.running = make(chan struct{})
	if s.name == "" {
		s.name = "a"
	}
	w := &world{t: t, store: s.shelf.store(), wire: s.wire, model: s.model, log: &logBuffer{}, ended: make(chan error, 1)}
	cfg := Config{
		Store: w.store, Memory: w.store, Transport: w.wire, Counter: counter, Replica: s.name,
		Tools: []chat.Tool{handTool{name: "look", reads: true}, handTool{name: "act"}}, Values: reload.Values{Model: w.model, Compaction: smallSettings},
		Metrics: prometheus.NewRegistry(), Remember: view.Remember{PinnedTokens: 600},
	}
	w.gather = cfg.Metrics.(*prometheus.Registry).Gather
	if s.config != nil {
		s.config(&cfg)
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.bot = b
	ctx, cancel := context.WithCancel(zerolog.New(w.log).WithContext(t.Context()))
	go func() { w.ended <- b.Run(ctx) }()
	<-w.wire.running
	w.begin = cancel
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-w.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(w.stop)
	synctest.Wait()
	return w
}

// said makes a message of a group member, by id and nick.
func said(id, who, words string) sessions.Message {
	return sessions.Message{
		RobotCode: "robot", ConversationID: "c1", ConversationType: sessions.Group, ConversationTitle: "ops", ID: sessions.MessageID(id),
		SenderID: sessions.UserID("u-" + who), StaffID: sessions.UserID("u-" + who), SenderNick: who, Kind: "text", Text: words,
		Webhook: "https://oapi.dingtalk.com/robot/sendBySession",
	}
}

// reminding makes a message of a reminder that a group member set: it has no webhook.
func reminding(id, who, words string) sessions.Message {
	m := said(id, who, words)
	m.Webhook = ""
	m.Scheduled = &sessions.Scheduled{ID: 1, Kind: sessions.Remind, DueAt: time.Now()}
	return m
}

// group is the session of said.
var group = sessions.NewKey("robot", "c1", "")

// post hands a message in, and fails the test where it is not accepted.
func (w *world) post(m sessions.Message) {
	w.t.Helper()
	if err := w.wire.accept(w.t.Context(), m); err != nil {
		w.t.Fatalf("accept %s: %v", m.ID, err)
	}
}

// say posts words and waits until everything that follows from them is done that needs no clock.
func (w *world) say(id, who, words string) {
	w.t.Helper()
	w.post(said(id, who, words))
	synctest.Wait()
}

// after lets time pass and everything settle.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// state is the session's row, with the flush state.
func (w *world) state(key sessions.Key) sessions.Session {
	w.t.Helper()
	s, err := w.store.mem.Session(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// want fails the test unless got equals want, both printed.
func want[T any](tb testing.TB, what string, got, wanted T) {
	tb.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", wanted); g != w {
		tb.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
