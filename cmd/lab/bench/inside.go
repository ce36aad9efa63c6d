package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot"
	"ebb/bot/chat"
	"ebb/bot/config"
	"ebb/bot/off"
	"ebb/bot/reload"
	"ebb/bot/tools"
	"ebb/cmd/bot/gateway"
	"ebb/cmd/lab/local"
	"ebb/cmd/lab/rig"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql"
)

// insideGateway runs one turn at a time to its end, upkeep included, without DingTalk and model: it measures Ebb and
// its database alone.
type insideGateway struct {
	accept chat.Accept
	turnSignals
	stop  func() error
	asked int
	say   func(asked int) string // the question; nil: one for all
}

// turnSignals ignore work for other sessions, perhaps of an earlier row.
type turnSignals struct {
	now  *atomic.Value // sessions.Key
	sent chan struct{}
	done chan struct{}
}

func (s turnSignals) signalStep(key sessions.Key, step chan<- struct{}) {
	if s.now.Load() != key {
		return
	}
	select {
	case step <- struct{}{}:
	default: // said already
	}
}

func (b *suite) openInside(ctx context.Context) (*insideGateway, error) {
	store, err := sql.Open(ctx, sql.Options{URL: b.private.URL(), MaxConns: 4})
	if err != nil {
		return nil, err
	}
	in := &insideGateway{turnSignals: turnSignals{&atomic.Value{}, make(chan struct{}, 1), make(chan struct{}, 1)}}
	inlet := local.NewInlet()
	gateway, err := newInside(store, &insideTransport{inlet, in.turnSignals}, in.turnSignals)
	if err != nil {
		store.Close()
		return nil, err
	}
	in.accept, in.stop, err = local.RunInside(ctx, store, gateway, inlet)
	return in, err
}

func newInside(store *sql.Store, transport chat.Transport, s turnSignals) (*bot.Bot, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, err
	}
	config := config.Default()
	set, _ := config.Policies()
	stores := store.Ports()
	stores.Outbox = insideOutbox{store.Outbox, s}
	return bot.New(bot.Config{
		Stores: stores, Memory: store.Memory(), Transport: transport, Counter: counter,
		Replica: sessions.ReplicaID("inside-" + rand.Text()), Tools: tools.All(gateway.ToolParts(store), time.UTC), Values: reload.Values{Model: insideModel{}, Compaction: set},
		Remember: gateway.Remember(config.Agent.Memory),
		Flush:    time.Millisecond, // the stop is not measured, and its flush is not needed
		Elector:  store.Replicas, Metrics: prometheus.NewRegistry(), Parts: off.Parts(),
	})
}

// runTurn returns when the reply was marked and the upkeep done.
func (in *insideGateway) runTurn(ctx context.Context, conversation sessions.ConversationID) (time.Duration, error) {
	in.asked++
	text := "请问发布窗口和回滚负责人是谁？"
	if in.say != nil {
		text = in.say(in.asked)
	}
	in.now.Store(sessions.NewKey(rig.RobotCode, conversation, ""))
	began := time.Now()
	err := in.accept(ctx, sessions.Message{
		RobotCode: rig.RobotCode, ConversationID: conversation, ConversationType: sessions.Group, ID: sessions.MessageID(fmt.Sprintf("inside-%d", in.asked)),
		SenderID: "u1", StaffID: "u1", SenderNick: "张伟", Kind: "text", Text: text, SentAt: began,
	})
	if err != nil {
		return 0, err
	}
	limit, cancel := context.WithTimeoutCause(ctx, rig.AnswerTimeout, errors.New("a turn inside this process did not end"))
	defer cancel()
	for _, step := range []chan struct{}{in.sent, in.done} {
		select {
		case <-step:
		case <-limit.Done():
			return 0, context.Cause(limit)
		}
	}
	return time.Since(began), nil
}

type insideTransport struct {
	local.Inlet
	turnSignals
}

// Send implements chat.Transport.
func (t *insideTransport) Send(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
	t.signalStep(o.Key, t.sent)
	return chat.Sent{Via: "webhook", Part: 1}, nil
}

// insideOutbox signals the mark of a reply, the last step of a turn without a compaction.
type insideOutbox struct {
	sessions.Outbox
	turnSignals
}

// Settle implements sessions.Outbox.
func (s insideOutbox) Settle(ctx context.Context, r sessions.SendOutcome) error {
	err := s.Outbox.Settle(ctx, r)
	s.signalStep(r.Key, s.done)
	return err
}

type insideModel struct{}

// Generate implements llm.Model.
func (insideModel) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	if r.Force != "" {
		calls := []sessions.ToolCall{{ID: "c1", Name: r.Force, Arguments: `{"facts":[],"nothing_to_save":true}`}}
		return llm.Response{ToolCalls: calls, Finish: llm.FinishTools, Model: "inside"}, nil
	}
	return llm.Response{
		Text: "发布窗口是周五晚上八点到十点，回滚由李娜负责。", Finish: llm.FinishStop, Model: "inside",
		Usage: sessions.Usage{Prompt: 2000, Completion: 40},
	}, nil
}
