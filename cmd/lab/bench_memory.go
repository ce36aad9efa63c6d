package main

import (
	"context"
	"fmt"
	"time"
)

const (
	memorySeen   = 10_000
	memoryActive = pacedConversations
	memoryTime   = 4 * time.Second
	memoryRate   = 100
	memoryLimit  = 300 << 20
)

// memory has one gateway see ten thousand sessions, then has people talk in some of them.
func (b *bench) memory(ctx context.Context) (figures []figure, err error) {
	r, ctx := b.openRig(ctx)
	defer func() { err = joinStop(err, r.close(ctx)) }()
	g, err := r.one(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.once(ctx, 0, memoryActive); err != nil { // as many connections as it will have
		return nil, err
	}
	before, err := g.usage(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.once(ctx, memoryActive, memorySeen-memoryActive); err != nil {
		return nil, err
	}
	began := time.Now()
	talk := make(chan []*question, 1)
	go func() { talk <- r.paced(ctx, memoryTime, memoryRate) }()
	var resident float64
	for until(ctx, time.Now().Add(memoryTime/10)) && time.Since(began) < memoryTime {
		u, err := g.usage(ctx)
		if err != nil {
			return nil, err
		}
		resident = max(resident, u.resident)
	}
	if _, err := all(ctx, <-talk); err != nil {
		return nil, err
	}
	until(ctx, time.Now().Add(time.Second)) // marks of replies and upkeep end
	after, err := g.usage(ctx)
	if err != nil {
		return nil, err
	}
	more := per(float64(after.goroutines-before.goroutines), memorySeen-memoryActive)
	return []figure{
		figure{
			what: fmt.Sprintf("RSS, %d sessions seen, %d active", memorySeen, memoryActive), measured: fmt.Sprintf("%.0f MB", resident/(1<<20)),
			target: fmt.Sprintf("<= %d MB", memoryLimit>>20),
		}.atMost(resident, memoryLimit),
		figure{
			what: "goroutines at rest", measured: fmt.Sprintf("%d, %d before the idle sessions", after.goroutines, before.goroutines),
			ratio: fmt.Sprintf("%.2f an idle session", max(0, more)), target: "0 an idle session",
		}.atMost(max(0, float64(int(more*100))), 0),
	}, nil
}
