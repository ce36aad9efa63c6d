package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"ebb/cmd/lab/rig"
)

// With more conversations than messages in flight, no conversation has two questions at once.
const (
	turnsConversations = 12 * rig.MaxInFlight
	turnsRounds        = 4
	turnsSlice         = 2500 * time.Millisecond
	ceilingSlice       = 1200 * time.Millisecond

	latencyRate   = 50 // turns a second
	latencyRounds = 2
	latencySlice  = 5 * time.Second
	latencyBeside = 2 * time.Second
)

// measureTurns alternates turns with as many plain commits as theirs.
func (b *suite) measureTurns(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	g, err := r.startOne(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.AskOnce(ctx, 0, turnsConversations); err != nil { // every session is made
		return nil, err
	}
	commits := b.turnCommits()
	var sum loopUsage
	units := 0.0
	for range turnsRounds {
		if err := sum.addLoop(ctx, r, g, turnsSlice, r.AskPlainly); err != nil {
			return nil, err
		}
		rate, err := b.commitCeiling(ctx, ceilingSlice, rig.MaxInFlight, commits)
		if err != nil {
			return nil, err
		}
		units += rate / turnsRounds
	}
	rate := sum.rate()
	share := rig.Ratio(rate, units)
	each := sum.cpuEach()
	return []rig.Figure{
		rig.Figure{
			Name: "turns/s end to end", Measured: fmt.Sprintf("%.0f turns/s, %d in flight", rate, rig.MaxInFlight), Target: ">= 25 % of the ceiling",
			Ratio: fmt.Sprintf("%.0f %% of %.0f x %d commits/s", 100*share, units, commits),
		}.AtLeast(share, 0.25),
		rig.Figure{Name: "gateway CPU a turn", Measured: rig.FormatMillis(each), Target: "<= 1.5 ms"}.AtMost(float64(each), float64(1500*time.Microsecond)),
		{Name: "gateway allocations a turn", Measured: fmt.Sprintf("%.0f KB", sum.allocatedEach()/1024)},
	}, nil
}

// loopUsage is the work of closed loops.
type loopUsage struct {
	turns     int
	seconds   float64
	cpu       time.Duration
	allocated float64 // bytes
}

// addLoop runs a closed loop of one gateway.
func (u *loopUsage) addLoop(ctx context.Context, r *fixture, g *gatewayProcess, slice time.Duration, ask func(conversation string) *rig.Question) error {
	before, err := g.readUsage(ctx)
	if err != nil {
		return err
	}
	n, took, err := r.RunClosedLoop(ctx, slice, turnsConversations, ask)
	if err != nil {
		return err
	}
	after, err := g.readUsage(ctx)
	if err != nil {
		return err
	}
	u.turns, u.seconds, u.cpu, u.allocated = u.turns+n, u.seconds+took.Seconds(), u.cpu+after.cpu-before.cpu, u.allocated+after.allocated-before.allocated
	return nil
}

func (u *loopUsage) rate() float64 { return float64(u.turns) / u.seconds }
func (u *loopUsage) cpuEach() time.Duration {
	return time.Duration(rig.Ratio(float64(u.cpu), float64(u.turns)))
}
func (u *loopUsage) allocatedEach() float64 { return rig.Ratio(u.allocated, float64(u.turns)) }

// measureLatency measures from the frame to the call of the webhook, far below the maximal rate.
func (b *suite) measureLatency(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	if _, err := r.startOne(ctx); err != nil {
		return nil, err
	}
	if err := r.AskOnce(ctx, 0, rig.PacedConversations); err != nil {
		return nil, err
	}
	var took, beside []time.Duration
	for range latencyRounds {
		some, err := rig.WaitAll(ctx, r.AskPaced(ctx, latencySlice, latencyRate))
		if err != nil {
			return nil, err
		}
		took = append(took, some...)
		if some, err = b.pacedCommits(ctx, latencyBeside, latencyRate, b.turnCommits()); err != nil {
			return nil, err
		}
		beside = append(beside, some...)
	}
	line := func(q float64, limit time.Duration) rig.Figure {
		got, alone := rig.Quantile(took, q), rig.Quantile(beside, q)
		return rig.Figure{
			Name:     fmt.Sprintf("gateway time a turn, %d turns/s, p%.0f of %d", latencyRate, 100*q, len(took)),
			Measured: rig.FormatMillis(got), Target: "<= " + limit.String(),
			Ratio: fmt.Sprintf("%d commits at the same time: %s", b.turnCommits(), rig.FormatMillis(alone)),
		}.AtMost(float64(got), float64(limit))
	}
	return []rig.Figure{line(0.50, 8*time.Millisecond), line(0.99, 40*time.Millisecond)}, nil
}

// turnCommits is the measured number, or the designed one in a run without that row.
func (b *suite) turnCommits() int {
	if n := int(math.Round(b.perTurn)); n > 0 {
		return n
	}
	return 3
}

// pacedCommits is the machine's and the disk's part of a turn's time.
func (b *suite) pacedCommits(ctx context.Context, d time.Duration, rate, commits int) ([]time.Duration, error) {
	var took []time.Duration
	start := time.Now()
	for i := range int(d.Seconds() * float64(rate)) {
		if !rig.WaitUntil(ctx, start.Add(time.Duration(i)*time.Second/time.Duration(rate))) {
			return nil, context.Cause(ctx)
		}
		began := time.Now()
		for range commits {
			if err := b.yard.Commit(ctx, 0); err != nil {
				return nil, err
			}
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
