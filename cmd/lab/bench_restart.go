package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebb/bot/config"
	"ebb/sessions"
)

const (
	takeoverRounds = 2

	restartRate  = 50
	restartTime  = 16 * time.Second
	restartFirst = 4 * time.Second // before the first gateway is replaced
	restartPause = 2 * time.Second // between the two
)

// takeover kills the gateway that has a message in hand and waits for the answer of the other one.
func (b *bench) takeover(ctx context.Context) (figures []figure, err error) {
	r, ctx := b.openRig(ctx)
	defer func() { err = joinStop(err, r.close(ctx)) }()
	ttl := config.Default().Cluster.LeaseTTL
	var worst time.Duration
	for round := range takeoverRounds {
		for len(r.alive()) < 2 {
			if _, err := r.start(ctx); err != nil {
				return nil, err
			}
		}
		name := numbered(round)
		q := r.ask(name, holdWord)
		select {
		case <-r.script.held:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(answerLimit):
			return nil, errors.New("no gateway took the message")
		}
		s, err := r.store.Session(ctx, sessions.NewKey(demoRobot, sessions.ConversationID(r.conversation(name)), ""))
		if err != nil {
			return nil, err
		}
		owner := r.byReplica(s.Lease.Owner)
		if owner == nil {
			return nil, fmt.Errorf("replica %s is none of ours", s.Lease.Owner)
		}
		killed := time.Now()
		if err := owner.kill(); err != nil {
			return nil, err
		}
		if err := q.wait(ctx); err != nil {
			return nil, err
		}
		worst = max(worst, q.answered.Sub(killed))
	}
	limit := ttl + time.Second
	return []figure{figure{
		what: "takeover after SIGKILL", measured: fmt.Sprintf("%.2f s, the longest of %d", worst.Seconds(), takeoverRounds),
		target: fmt.Sprintf("<= lease_ttl + 1 s = %s", limit),
	}.atMost(worst.Seconds(), limit.Seconds())}, nil
}

// alive are the gateways that run.
func (r *rig) alive() []*child {
	var out []*child
	for _, c := range r.children {
		if c.alive() {
			out = append(out, c)
		}
	}
	return out
}

// byReplica finds the gateway whose name a replica has in front of its random part.
func (r *rig) byReplica(id sessions.ReplicaID) *child {
	for _, c := range r.alive() {
		if strings.HasPrefix(string(id), c.name+"-") {
			return c
		}
	}
	return nil
}

// span is a stretch of time.
type span struct{ from, to time.Time }

func (s span) holds(t time.Time) bool { return !t.Before(s.from) && t.Before(s.to) }

// restart replaces two gateways one after the other while people talk.
func (b *bench) restart(ctx context.Context) (figures []figure, err error) {
	r, ctx := b.openRig(ctx)
	defer func() { err = joinStop(err, r.close(ctx)) }()
	r.flush = config.Default().Shutdown.Flush // part of what is measured here
	for range 2 {
		if _, err := r.start(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.once(ctx, 0, pacedConversations); err != nil {
		return nil, err
	}
	began := time.Now()
	talk := make(chan []*question, 1)
	go func() { talk <- r.paced(ctx, restartTime, restartRate) }()
	until(ctx, began.Add(restartFirst))
	spans, err := r.roll(ctx)
	asked := <-talk
	if err != nil {
		return nil, err
	}
	return r.judge(ctx, asked, spans)
}

// roll replaces the two gateways and returns when that was.
func (r *rig) roll(ctx context.Context) ([]span, error) {
	var spans []span
	for _, old := range r.alive() {
		s := span{from: time.Now()}
		if _, err := r.start(ctx); err != nil {
			return nil, err
		}
		if err := old.terminate(); err != nil {
			return nil, err
		}
		if err := old.ended(ctx); err != nil {
			return nil, err
		}
		s.to = time.Now()
		spans = append(spans, s)
		until(ctx, time.Now().Add(restartPause))
	}
	return spans, nil
}

// judge counts what was lost, what was answered twice, and how much longer replies took.
func (r *rig) judge(ctx context.Context, asked []*question, spans []span) ([]figure, error) {
	lost, twice := 0, 0
	var calm, rolling []time.Duration
	for _, q := range asked {
		if err := q.wait(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			lost++
			continue
		}
		if spans[0].holds(q.pushed) || spans[1].holds(q.pushed) {
			rolling = append(rolling, q.took())
		} else {
			calm = append(calm, q.took())
		}
	}
	answers := map[string]int{}
	for _, reply := range r.dingtalk.Replies("") {
		for _, mark := range marks.FindAllString(reply.Text, -1) {
			if answers[mark]++; answers[mark] == 2 {
				twice++
			}
		}
	}
	of := fmt.Sprintf(" of %d, two gateways replaced", len(asked))
	with, without := quantile(rolling, 0.99), quantile(calm, 0.99)
	slower := with - without
	return []figure{
		figure{what: "rolling restart: lost", measured: fmt.Sprint(lost, of), ratio: "-", target: "0"}.atMost(float64(lost), 0),
		figure{what: "rolling restart: answered twice", measured: fmt.Sprint(twice, of), ratio: "-", target: "0"}.atMost(float64(twice), 0),
		figure{
			what: "rolling restart: reply p99", measured: fmt.Sprintf("%s, %s when calm (%d and %d)", millis(with), millis(without), len(rolling), len(calm)),
			ratio: fmt.Sprintf("%+.2f s", slower.Seconds()), target: "<= +1 s",
		}.atMost(slower.Seconds(), 1),
	}, nil
}
