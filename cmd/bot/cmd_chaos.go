package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// chaosCmd is bot chaos: it torments gateways and checks that nothing was lost.
type chaosCmd struct {
	For      time.Duration `default:"30m" help:"How long to make trouble."`
	Seed     uint64        `help:"Of the plan, which is the same for the same seed and length; 0: a new one."`
	Replicas int           `default:"3" help:"Gateways on one PostgreSQL."`
	Rate     float64       `default:"8" help:"Messages a second."`
	Every    time.Duration `default:"5s" help:"Between one trouble and the next, on average."`
	Program  string        `help:"The program to torment instead of this one." type:"existingfile" placeholder:"FILE"`
	Calm     bool          `help:"Make no trouble: only talk, and watch what the gateways take."`
}

// Run torments, checks, and prints what was done and what was found. Its exit code is 1 where a promise was broken.
func (c chaosCmd) Run(ctx context.Context, app *App) (err error) {
	if c.Replicas < 1 || c.Rate <= 0 || c.Every <= 0 || c.For <= 0 {
		return usageError{errors.New("chaos: --for, --replicas, --rate and --every must be more than 0")}
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()>>1 | 1
	}
	w, err := openChaos(ctx, c, app.Stdout)
	defer func() { err = joinStop(err, w.close(ctx)) }()
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	fmt.Fprintf(app.Stdout, "seed %d: %s of trouble, %d gateways, %g messages a second\n", c.Seed, c.For, c.Replicas, c.Rate)
	if err := w.run(ctx); err != nil {
		return fmt.Errorf("chaos: seed %d: %w", c.Seed, err)
	}
	found, err := w.check(ctx)
	if err != nil {
		return fmt.Errorf("chaos: seed %d: %w", c.Seed, err)
	}
	w.report(app.Stdout, found)
	if len(found.broken) > 0 {
		return errReported
	}
	return nil
}

// run starts everything, makes trouble while people talk, and lets things come to rest.
func (w *chaos) run(ctx context.Context) error {
	for i := range w.opt.Replicas {
		if err := w.slots[i].start(ctx); err != nil {
			return err
		}
	}
	if err := w.sim.WaitConns(ctx, w.opt.Replicas); err != nil {
		return err
	}
	watch, stopWatch := context.WithCancel(ctx)
	watching := make(chan struct{})
	go func() { defer close(watching); w.watchTerms(watch) }()
	talk, stopTalk := context.WithCancel(ctx)
	talking := make(chan struct{})
	go func() { defer close(talking); w.talk.run(talk, w.opt.Rate) }()

	began := time.Now()
	for _, t := range w.plan {
		if !until(ctx, began.Add(t.at)) {
			break
		}
		w.do(ctx, t)
	}
	until(ctx, began.Add(w.opt.For))
	stopTalk()
	<-talking
	err := w.settle(ctx)
	stopWatch()
	<-watching
	return errors.Join(err, context.Cause(ctx))
}

// settleLimit is how long everything may take to come to rest when the trouble is over.
const settleLimit = 2 * time.Minute

// settle ends all trouble and waits until nothing is left to do; then it stops the gateways cleanly.
func (w *chaos) settle(ctx context.Context) error {
	w.calm(ctx)
	limit, stop := context.WithTimeout(ctx, settleLimit)
	defer stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	rest := ""
	for {
		open, err := w.eye.Undone(limit)
		unacked := w.sim.State().Unacked
		switch {
		case err != nil:
			rest = err.Error()
		case open.Messages == 0 && open.Replies == 0 && w.talk.owed() == 0:
			return w.stopAll(ctx)
		default:
			rest = fmt.Sprintf("%d messages without an answer, %d replies not sent, %d pushes not acknowledged", open.Messages, open.Replies, unacked)
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			w.broke("nothing comes to rest within %s: %s", settleLimit, rest)
			return w.stopAll(ctx)
		}
	}
}

// stopAll ends the gateways cleanly, all at once; each must end by itself with exit code 0.
func (w *chaos) stopAll(ctx context.Context) error {
	for _, s := range w.slots {
		if err := s.child.terminate(); err != nil {
			return err
		}
	}
	for _, s := range w.slots {
		w.awaitExit(ctx, s.child)
	}
	return nil
}
