package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/bot/config"
	"ebb/cmd/lab/rig"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// Soft compactions of contexts of the default size, one a second: several times as many as the messages beside them
// need.
const (
	upkeepRounds = 3
	upkeepSlice  = 4 * time.Second
	upkeepRate   = 50
)

// measureUpkeep compares response times slice by slice. Slices without compactions have as many turns in nearly as
// large contexts: only the upkeep differs.
func (b *suite) measureUpkeep(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	if err := r.plantLarge(ctx); err != nil {
		return nil, err
	}
	if _, err := r.startOne(ctx); err != nil {
		return nil, err
	}
	if err := r.AskOnce(ctx, 0, rig.PacedConversations); err != nil {
		return nil, err
	}
	var with, without []time.Duration
	for round := range upkeepRounds {
		calm, err := r.runSlice(ctx, "calm", round)
		if err != nil {
			return nil, err
		}
		busy, err := r.runSlice(ctx, "ripe", round)
		if err != nil {
			return nil, err
		}
		if err := r.awaitCompacted(ctx, round); err != nil {
			return nil, err
		}
		with, without = append(with, busy...), append(without, calm...)
	}
	a, z := rig.Quantile(with, 0.99), rig.Quantile(without, 0.99)
	ratio := rig.Ratio(float64(a), float64(z))
	return []rig.Figure{rig.Figure{
		Name: "reply p99 while soft compactions run", Measured: fmt.Sprintf("%s with %d of them, %s without", rig.FormatMillis(a), upkeepRounds*large, rig.FormatMillis(z)),
		Ratio: fmt.Sprintf("%.2f x", ratio), Target: "<= 1.25 x",
	}.AtMost(ratio, 1.25)}, nil
}

const large = int(upkeepSlice / time.Second)

func largeName(kind string, round, i int) string { return fmt.Sprintf("%s-%d-%d", kind, round, i) }

// plantLarge writes ripe contexts above the mark of compaction, and calm ones below that of the flush.
func (r *fixture) plantLarge(ctx context.Context) error {
	counter, err := tokens.NewCounter()
	if err != nil {
		return err
	}
	c := config.Default().Agent.Compaction
	text := rig.LongMessages[2].Text + rig.LongMessages[0].Text
	size := len(text) / rig.BytesPerToken // as the model will report it
	for kind, share := range map[string]float64{"ripe": 1.05, "calm": c.FlushRatio * 0.9} {
		s := sessionSeed{text: text, tokens: counter.Count(text), events: int(share * float64(c.AutoCompactThreshold) / float64(size))}
		s.total = s.events * size
		for round := range upkeepRounds {
			for i := range large {
				s.conversation = sessions.ConversationID(r.ConversationID(largeName(kind, round, i)))
				if _, err := r.plantSession(ctx, s); err != nil {
					return err
				}
			}
		}
	}
	if _, err := r.store.Leases.Resign(ctx, planter); err != nil {
		return err
	}
	return r.yard.Tidy(ctx)
}

// runSlice counts only the replies in ordinary conversations. Once a second it asks in a large one.
func (r *fixture) runSlice(ctx context.Context, kind string, round int) ([]time.Duration, error) {
	began := time.Now()
	talk := make(chan []*rig.Question, 1)
	go func() { talk <- r.AskPaced(ctx, upkeepSlice, upkeepRate) }()
	var beside []*rig.Question
	for i := range large {
		rig.WaitUntil(ctx, began.Add(time.Duration(i)*time.Second+200*time.Millisecond))
		beside = append(beside, r.Ask(largeName(kind, round, i), strings.Repeat("请看一下。", 4)))
	}
	asked := <-talk
	if _, err := rig.WaitAll(ctx, beside); err != nil {
		return nil, err
	}
	return rig.WaitAll(ctx, asked)
}

func (r *fixture) awaitCompacted(ctx context.Context, round int) error {
	limit, stop := context.WithTimeoutCause(ctx, rig.AnswerTimeout, fmt.Errorf("a context was not compacted within %s", rig.AnswerTimeout))
	defer stop()
	for i := range large {
		key := sessions.NewKey(rig.RobotCode, sessions.ConversationID(r.ConversationID(largeName("ripe", round, i))), "")
		for {
			s, err := r.store.Sessions.Session(limit, key)
			if err == nil && s.CompactionCount > 0 {
				break
			}
			if !rig.WaitUntil(limit, time.Now().Add(20*time.Millisecond)) {
				return fmt.Errorf("session %s: %w", key, context.Cause(limit))
			}
		}
	}
	return nil
}
