package bench

import (
	"context"
	"fmt"
	"time"

	"ebb/cmd/lab/rig"
)

const (
	memorySeen   = 10_000
	memoryActive = rig.PacedConversations
	memoryTime   = 4 * time.Second
	memoryRate   = 100
	memoryLimit  = 300 << 20
)

func (b *suite) measureMemory(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	g, err := r.startOne(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.AskOnce(ctx, 0, memoryActive); err != nil { // as many connections as it will have
		return nil, err
	}
	before, err := g.readUsage(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.AskOnce(ctx, memoryActive, memorySeen-memoryActive); err != nil {
		return nil, err
	}
	began := time.Now()
	talk := make(chan []*rig.Question, 1)
	go func() { talk <- r.AskPaced(ctx, memoryTime, memoryRate) }()
	var resident float64
	for rig.WaitUntil(ctx, time.Now().Add(memoryTime/10)) && time.Since(began) < memoryTime {
		u, err := g.readUsage(ctx)
		if err != nil {
			return nil, err
		}
		resident = max(resident, u.resident)
	}
	if _, err := rig.WaitAll(ctx, <-talk); err != nil {
		return nil, err
	}
	rig.WaitUntil(ctx, time.Now().Add(time.Second)) // marks of replies and upkeep end
	after, err := g.readUsage(ctx)
	if err != nil {
		return nil, err
	}
	more := rig.Ratio(float64(after.goroutines-before.goroutines), memorySeen-memoryActive)
	return []rig.Figure{
		rig.Figure{
			Name: fmt.Sprintf("RSS, %d sessions seen, %d active", memorySeen, memoryActive), Measured: fmt.Sprintf("%.0f MB", resident/(1<<20)),
			Target: fmt.Sprintf("<= %d MB", memoryLimit>>20),
		}.AtMost(resident, memoryLimit),
		rig.Figure{
			Name: "goroutines when idle", Measured: fmt.Sprintf("%d, %d before the idle sessions", after.goroutines, before.goroutines),
			Ratio: fmt.Sprintf("%.2f an idle session", max(0, more)), Target: "0 an idle session",
		}.AtMost(max(0, float64(int(more*100))), 0),
	}, nil
}
