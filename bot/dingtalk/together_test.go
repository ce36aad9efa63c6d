package dingtalk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/bot"
	"ebb/bot/chat"
	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/off"
	"ebb/bot/reload"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// echo is a model that keeps the questions of each request: the user messages after its last answer.
type echo struct {
	mu    sync.Mutex
	turns map[string][][]string // by group: the questions of each turn
}

func (e *echo) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	var asked []string
	group := ""
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			asked = nil
		}
		if _, words, ok := strings.Cut(m.Content, "): "); ok && m.Role == "user" {
			group, _, _ = strings.Cut(words, " ")
			asked = append(asked, strings.Fields(words)[1])
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.turns[group] = append(e.turns[group], asked)
	return llm.Response{Text: "ok", Finish: llm.FinishStop, Model: "echo"}, nil
}

func (e *echo) of(group string) [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.turns[group])
}

// await returns the turns of a group once they have a number of questions.
func (e *echo) await(t *testing.T, group string, questions int) string {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		turns := e.of(group)
		if len(slices.Concat(turns...)) >= questions {
			return fmt.Sprint(turns)
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("group %s was asked %v", group, turns)
		}
	}
}

// runBot runs a bot on a database of its own, with the simulator's DingTalk.
func runBot(t *testing.T, s *dingtalktest.Server, gather time.Duration) (*echo, *sql.Store) {
	t.Helper()
	store, err := sql.Open(t.Context(), sql.Options{URL: sqltest.URL(t), MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dingtalk.New(dingtalk.Config{ClientID: "dingsimapp0001", ClientSecret: "sim-secret", APIBase: s.URL, OAPIBase: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	model := &echo{turns: map[string][][]string{}}
	b, err := bot.New(bot.Config{
		Stores: store.Ports(), Memory: store.Memory(), Transport: tr, Counter: counter, Replica: "a", Gather: gather,
		Elector: store.Replicas, Metrics: prometheus.NewRegistry(), Parts: off.Parts(),
		Values: reload.Values{Model: model, Compaction: compaction.Settings{
			Enabled: true, Policy: compaction.Policies["token_budget"],
			Window: compaction.Window{Context: 900_000, Reserve: 100_000, Threshold: 700_000, Share: 0.5, FlushRatio: 0.9, Summary: 4000},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(zerolog.Nop().WithContext(context.WithoutCancel(t.Context())))
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		store.Close()
	})
	if err := s.WaitConns(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return model, store
}

// Messages that are sent back to back stand in the view in the order in which they were sent, whatever their size. They
// are answered together, up to the limit of a turn: sessions.MaxTurnBytes. Most of these pairs are of one millisecond
// of DingTalk's clock.
func TestMessagesSentTogetherKeepTheirOrder(t *testing.T) {
	long := strings.Repeat("一份很长的日志 ", 300_000/22) // it costs a hundred times the CPU of a short one
	for name, send := range map[string]struct {
		first string
		pairs int
		pause time.Duration
	}{
		"short":              {first: strings.Repeat("x", 40), pairs: 40},
		"long first":         {first: long, pairs: 12},
		"short with a pause": {first: "x", pairs: 40, pause: 5 * time.Millisecond},
		"long with a pause":  {first: long, pairs: 12, pause: 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := dingtalktest.NewServer(t, dingtalktest.Fast())
			model, _ := runBot(t, s, 100*time.Millisecond)
			for i := range send.pairs {
				group := fmt.Sprintf("cidPair%d", i)
				first := s.Say(dingtalktest.Message{Conversation: group, Text: group + " 1st " + send.first})
				if send.pause > 0 {
					<-time.After(send.pause) // the case is a pause
				}
				s.Say(dingtalktest.Message{Conversation: group, Text: group + " 2nd"})
				if ack, err := s.WaitAck(t.Context(), first); err != nil || ack.Code != 200 {
					t.Fatalf("the ack is %+v, %v", ack, err)
				}
			}
			for i := range send.pairs {
				group := fmt.Sprintf("cidPair%d", i)
				want := "[[1st 2nd]]"
				if len(send.first) > sessions.MaxTurnBytes {
					want = "[[1st] [2nd]]"
				}
				if got := model.await(t, group, 2); got != want {
					t.Errorf("pair %d was answered as %s, want %s", i, got, want)
				}
			}
		})
	}
}

// An ack waits for the storage alone, neither for the moment in which messages are gathered nor for the turn.
func TestGatheringDelaysNoAck(t *testing.T) {
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	model, _ := runBot(t, s, time.Hour)
	id := s.Say(dingtalktest.Message{Conversation: "cidCalm", Text: "cidCalm 1st"})
	if ack, err := s.WaitAck(t.Context(), id); err != nil || ack.Code != 200 {
		t.Errorf("the ack is %+v, %v", ack, err)
	}
	if got := model.of("cidCalm"); len(got) > 0 {
		t.Errorf("the turn began before the moment was over: %v", got)
	}
}

var _ chat.Receiver = (*dingtalk.Transport)(nil)

// A turn waits for a message that was received before and takes long to store, and not for one of another conversation.
func TestTurnAwaitsMessagesBeingStored(t *testing.T) {
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	tr, err := dingtalk.New(dingtalk.Config{ClientID: "dingsimapp0001", ClientSecret: "sim-secret", APIBase: s.URL, OAPIBase: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	storing, stored := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(zerolog.Nop().WithContext(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- tr.Run(ctx, func(_ context.Context, m sessions.Message) error {
			close(storing)
			<-stored
			return nil
		})
	}()
	defer func() { cancel(); <-ended }()
	if err := s.WaitConns(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.Say(dingtalktest.Message{Conversation: "cidSlow", Text: "slow"})
	<-storing
	tr.AwaitReceived(t.Context(), "cidOther")
	waited := make(chan struct{})
	go func() { tr.AwaitReceived(t.Context(), "cidSlow"); close(waited) }()
	select {
	case <-waited:
		t.Error("the wait ended before the message was stored")
	case <-time.After(50 * time.Millisecond):
	}
	close(stored)
	<-waited
}
