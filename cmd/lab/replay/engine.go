package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot"
	"ebb/bot/chat"
	"ebb/bot/config"
	"ebb/bot/off"
	"ebb/bot/reload"
	"ebb/bot/tools"
	"ebb/bot/view"
	"ebb/cmd/bot/gateway"
	"ebb/cmd/lab/local"
	"ebb/cmd/lab/rig"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/localpg"
)

type ourPolicy struct {
	name     string
	settings compaction.Settings
	worn     bool    // run again with summaries that miss identifiers
	copied   float64 // probability with which a summary copies an identifier
}

// replayRig is a gateway in this process with one conversation under one policy.
type replayRig struct {
	*countingModel
	id      string
	began   time.Time
	gateway *bot.Bot
	accept  chat.Accept
	sent    chan struct{}
	stop    func() error
}

const replayTemplate = "replay_template"

func (c ourPolicy) replayAlone(ctx context.Context, server *localpg.Server, counter *tokens.Counter, t recordedTalk) (b policyBill, err error) {
	name := "replay_" + strings.ToLower(rand.Text())
	database, err := server.NewDatabase(ctx, name, replayTemplate)
	if err != nil {
		return policyBill{}, err
	}
	defer func() { err = errors.Join(err, server.DropDatabase(context.WithoutCancel(ctx), name)) }()
	return c.replayTalk(ctx, database, counter, t)
}

func (c ourPolicy) replayTalk(ctx context.Context, database string, counter *tokens.Counter, t recordedTalk) (b policyBill, err error) {
	r, err := c.openEngine(ctx, database, counter, t)
	if err != nil {
		return policyBill{}, err
	}
	defer func() { err = rig.JoinStopError(err, r.stop()) }()
	for i := 0; i+1 < len(t.said); i += 2 {
		if err := r.sayMessage(ctx, i); err != nil {
			return policyBill{}, fmt.Errorf("message %d of %s under %s: %w", i, t.name, c.name, err)
		}
	}
	return r.finalBill()
}

// openEngine opens its own pool. No time is measured: commits need not wait for the disk.
func (c ourPolicy) openEngine(ctx context.Context, database string, counter *tokens.Counter, t recordedTalk) (*replayRig, error) {
	store, err := openHasty(ctx, database)
	if err != nil {
		return nil, err
	}
	size := segmentCap
	if c.settings.Policy.Rolling {
		size = rollingCap
	}
	r := &replayRig{countingModel: newCountingModel(t, size, c.copied), id: "replay-" + rand.Text(), began: time.Now(), sent: make(chan struct{}, 1)}
	inlet := local.NewInlet()
	r.gateway, err = bot.New(bot.Config{
		Stores: store.Ports(), Memory: store.Memory(), Transport: replayTransport{inlet, r.sent, r.countingModel}, Counter: counter,
		Replica: sessions.ReplicaID(r.id), Tools: tools.All(gateway.ToolParts(store), time.UTC), Language: "en", Values: reload.Values{Model: r.countingModel, Compaction: c.settings},
		Remember: view.Remember{PinnedTokens: config.Default().Agent.Memory.PinnedTokens}, // only the cost of compactions is compared
		Flush:    time.Millisecond,                                                        // the stop is not measured
		Elector:  store.Replicas, Metrics: prometheus.NewRegistry(), Parts: off.Parts(),
	})
	if err != nil {
		store.Close()
		return nil, fmt.Errorf("making a gateway with policy %s: %w", c.name, err)
	}
	r.accept, r.stop, err = local.RunInside(ctx, store, r.gateway, inlet)
	return r, err
}

func openHasty(ctx context.Context, database string) (*sql.Store, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, fmt.Errorf("reading the database's address: %w", err)
	}
	q := u.Query()
	q.Set("synchronous_commit", "off")
	u.RawQuery = q.Encode()
	return sql.Open(ctx, sql.Options{URL: u.String(), MaxConns: 3})
}

// sayMessage waits for the answer, and until the gateway has nothing left to do.
func (r *replayRig) sayMessage(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rig.AnswerTimeout, errors.New("it is not done in time"))
	defer cancel()
	r.expectMessage(i)
	err := r.accept(ctx, sessions.Message{
		RobotCode: rig.RobotCode, ConversationID: sessions.ConversationID(r.id), ConversationType: sessions.Private,
		ID: sessions.MessageID(fmt.Sprintf("%s-%d", r.id, i)), SenderID: "u1", StaffID: "u1", SenderNick: "Alex",
		Kind: "text", Text: r.said[i].text,
		SentAt: r.began, // a line with the time for each minute of the replay would make a slow machine's figures larger
	})
	if err != nil {
		return err
	}
	select {
	case <-r.sent:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return r.gateway.AwaitIdle(ctx)
}

type replayTransport struct {
	local.Inlet
	sent  chan<- struct{}
	model *countingModel
}

// Send implements chat.Transport.
func (t replayTransport) Send(ctx context.Context, _ sessions.Outgoing) (chat.Sent, error) {
	t.model.noteAnswered()
	select {
	case t.sent <- struct{}{}:
	case <-ctx.Done():
	}
	return chat.Sent{Via: "webhook", Part: 1}, nil
}
