package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebb/bot/config"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

const (
	takeoverRounds = 2

	restartRate  = 50
	restartTime  = 16 * time.Second
	restartFirst = 4 * time.Second // until the first gateway is replaced
	restartPause = 2 * time.Second // between the two
)

func (b *suite) measureTakeover(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	ttl := config.Default().Cluster.LeaseTTL
	var worst time.Duration
	for round := range takeoverRounds {
		for len(r.liveGateways()) < 2 {
			if _, err := r.startGateway(ctx); err != nil {
				return nil, err
			}
		}
		name := rig.ConversationName(round)
		q := r.Ask(name, holdWord)
		select {
		case <-r.script.held:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(rig.AnswerTimeout):
			return nil, errors.New("no gateway took the message")
		}
		s, err := r.store.Sessions.Session(ctx, sessions.NewKey(rig.RobotCode, sessions.ConversationID(r.ConversationID(name)), ""))
		if err != nil {
			return nil, err
		}
		owner := r.byReplica(s.Lease.Owner)
		if owner == nil {
			return nil, fmt.Errorf("replica %s is none of ours", s.Lease.Owner)
		}
		killed := time.Now()
		if err := owner.Kill(); err != nil {
			return nil, err
		}
		if err := q.Wait(ctx); err != nil {
			return nil, err
		}
		worst = max(worst, q.Answered.Sub(killed))
	}
	limit := ttl + time.Second
	return []rig.Figure{rig.Figure{
		Name: "takeover after SIGKILL", Measured: fmt.Sprintf("%.2f s, the longest of %d", worst.Seconds(), takeoverRounds),
		Target: fmt.Sprintf("<= lease_ttl + 1 s = %s", limit),
	}.AtMost(worst.Seconds(), limit.Seconds())}, nil
}

func (r *fixture) liveGateways() []*rig.Process {
	var out []*rig.Process
	for _, c := range r.children {
		if c.Alive() {
			out = append(out, c)
		}
	}
	return out
}

func (r *fixture) byReplica(id sessions.ReplicaID) *rig.Process {
	for _, c := range r.liveGateways() {
		if strings.HasPrefix(string(id), c.Name+"-") {
			return c
		}
	}
	return nil
}

func (b *suite) measureRestart(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	r.flush = config.Default().Shutdown.Flush // part of the measurement
	for range 2 {
		if _, err := r.startGateway(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.AskOnce(ctx, 0, rig.PacedConversations); err != nil {
		return nil, err
	}
	began := time.Now()
	talk := make(chan []*rig.Question, 1)
	go func() { talk <- r.AskPaced(ctx, restartTime, restartRate) }()
	rig.WaitUntil(ctx, began.Add(restartFirst))
	spans, err := r.replaceAll(ctx)
	asked := <-talk
	if err != nil {
		return nil, err
	}
	return r.restartFigures(ctx, asked, spans)
}

func (r *fixture) replaceAll(ctx context.Context) ([]rig.Interval, error) {
	var spans []rig.Interval
	for _, old := range r.liveGateways() {
		s := rig.Interval{From: time.Now()}
		if _, err := r.startGateway(ctx); err != nil {
			return nil, err
		}
		if err := old.Terminate(); err != nil {
			return nil, err
		}
		if err := old.WaitExit(ctx); err != nil {
			return nil, err
		}
		s.To = time.Now()
		spans = append(spans, s)
		rig.WaitUntil(ctx, time.Now().Add(restartPause))
	}
	return spans, nil
}

func (r *fixture) restartFigures(ctx context.Context, asked []*rig.Question, spans []rig.Interval) ([]rig.Figure, error) {
	lost, twice := 0, 0
	var calm, rolling []time.Duration
	for _, q := range asked {
		if err := q.Wait(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			lost++
			continue
		}
		if spans[0].Contains(q.Pushed) || spans[1].Contains(q.Pushed) {
			rolling = append(rolling, q.ResponseTime())
		} else {
			calm = append(calm, q.ResponseTime())
		}
	}
	answers := map[string]int{}
	for _, reply := range r.dingtalk.Replies("") {
		for _, mark := range rig.MarkPattern.FindAllString(reply.Text, -1) {
			if answers[mark]++; answers[mark] == 2 {
				twice++
			}
		}
	}
	of := fmt.Sprintf(" of %d, two gateways replaced", len(asked))
	with, without := rig.Quantile(rolling, 0.99), rig.Quantile(calm, 0.99)
	slower := with - without
	return []rig.Figure{
		rig.Figure{Name: "rolling restart: lost", Measured: fmt.Sprint(lost, of), Ratio: "-", Target: "0"}.AtMost(float64(lost), 0),
		rig.Figure{Name: "rolling restart: answered twice", Measured: fmt.Sprint(twice, of), Ratio: "-", Target: "0"}.AtMost(float64(twice), 0),
		rig.Figure{
			Name: "rolling restart: reply p99", Measured: fmt.Sprintf("%s, %s when calm (%d and %d)", rig.FormatMillis(with), rig.FormatMillis(without), len(rolling), len(calm)),
			Ratio: fmt.Sprintf("%+.2f s", slower.Seconds()), Target: "<= +1 s",
		}.AtMost(slower.Seconds(), 1),
	}, nil
}
