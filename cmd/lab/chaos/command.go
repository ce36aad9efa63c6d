// Package chaos kills, stops and cuts off gateways while people talk, and then checks that nothing was lost, doubled or left
// unerased: `lab chaos`. World and faults come first, then the evidence, which is plain data, and the checks on it.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"ebb/bot/config"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

// Run injects faults, checks, and prints both. Its exit code is 1 after a broken promise.
func (c Command) Run(ctx context.Context, app *rig.App) (err error) {
	if c.Replicas < 1 || c.Rate <= 0 || c.Every <= 0 || c.Erase < 0 || c.Remind < 0 || c.Attach < 0 || c.Tools < 0 || c.Harm < 0 || c.For <= 0 {
		return rig.UsageError(errors.New("chaos: --for, --replicas, --rate and --every must be more than 0, --erase, --remind, --attach, --tools and --harm not less"))
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()>>1 | 1
	}
	if err := app.CheckProgram(); err != nil {
		return err
	}
	w, err := openChaos(ctx, c, app.Program, app.Stdout)
	defer func() { err = rig.JoinStopError(err, w.close(ctx)) }()
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	w.printPlan()
	if err := w.runAll(ctx); err != nil {
		return fmt.Errorf("chaos: seed %d: %w", c.Seed, err)
	}
	e, err := w.gatherEvidence(ctx)
	if err != nil {
		return fmt.Errorf("chaos: seed %d: %w", c.Seed, err)
	}
	found := e.checkAll()
	switch {
	case c.Harm > 0:
		found.broken = append(found.broken, judgeHarm(app.Stdout, e, w.middle, c.Calm)...)
	case c.Calm:
		found.broken = append(found.broken, w.judgeUsage(app.Stdout)...)
	}
	w.printReport(app.Stdout, found)
	if len(found.broken) > 0 {
		return rig.ErrReported
	}
	return nil
}

func (w *world) printPlan() {
	c, scope, what := w.opt, "groups", fmt.Sprintf("%d troubles", len(w.plan))
	if w.perMember() {
		scope = "members of groups"
	}
	if c.Calm {
		what = "no trouble"
	}
	if c.Harm > 0 {
		what += fmt.Sprintf(", members who mean harm every %s in the second half", c.Harm)
	}
	keys := map[bool]string{false: "honoured", true: "ignored"}[w.keysIgnored()]
	form := map[bool]string{false: "Markdown", true: "cards"}[c.Cards]
	fmt.Fprintf(w.out, "seed %d: %s with %s, %d gateways, %s connected, %g messages a second, sessions of %s, replies as %s, keys of replies %s\n",
		c.Seed, c.For, what, c.Replicas, w.connectionCount(), c.Rate, scope, form, keys)
}

// runAll starts everything, injects faults during talk, and waits for the end of all work.
func (w *world) runAll(ctx context.Context) error {
	for i := range w.opt.Replicas {
		if err := w.slots[i].startProcess(ctx); err != nil {
			return err
		}
	}
	connected := w.opt.Replicas
	if w.connectionCount() == config.ConnectionsOne {
		connected = 1
	}
	if err := w.sim.WaitConns(ctx, connected); err != nil {
		return err
	}
	watch, stopWatch := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { w.watchTerms(watch) })
	talk, stopTalk := context.WithCancel(ctx)
	var talking sync.WaitGroup
	talking.Go(func() { w.talk.talkUntilDone(talk, w.opt.Rate) })
	erase, stopErasing := context.WithCancel(ctx)
	defer stopErasing()
	if w.opt.Calm {
		talking.Go(func() { w.sampleUsage(talk) })
	}

	began := time.Now()
	w.middle = began.Add(w.opt.For / 2)
	defer func() {
		w.took = fmt.Sprintf("%s to begin, %s of talk, %s to come to rest and stop", roundDuration(began.Sub(w.began)), w.opt.For, roundDuration(time.Since(began)-w.opt.For))
	}()
	for _, t := range w.plan {
		if !rig.WaitUntil(ctx, began.Add(t.at)) || time.Since(began) > w.opt.For {
			break
		}
		injector{w}.injectFault(erase, t)
	}
	rig.WaitUntil(ctx, began.Add(w.opt.For))
	w.ended = time.Now()
	stopTalk()
	talking.Wait()
	err := w.awaitIdle(ctx)
	stopErasing()
	w.erasures.running.Wait()
	stopWatch()
	watching.Wait()
	return errors.Join(err, context.Cause(ctx))
}

func roundDuration(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// settleLimit bounds the remaining work after the last fault.
const settleLimit = 45 * time.Second

// awaitIdle ends all faults, waits for the end of all work, and stops the gateways cleanly.
func (w *world) awaitIdle(ctx context.Context) error {
	injector{w}.endFaults(ctx)
	limit, stop := context.WithTimeout(ctx, settleLimit)
	defer stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	rest := ""
	for {
		left, err := w.remainingWork(limit)
		if left != "" && err == nil {
			err = injector{w}.resumeRefused(limit)
		}
		if limit.Err() == nil { // a cut-off check saw a part alone
			if rest = left; err != nil {
				rest = err.Error()
			}
			if rest == "" {
				return w.stopAll(ctx)
			}
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			w.addBroken("nothing comes to rest within %s: %s", settleLimit, rest)
			return w.stopAll(ctx)
		}
	}
}

// remainingWork is empty when all is done.
func (w *world) remainingWork(ctx context.Context) (string, error) {
	open, err := w.eye.Undone(ctx)
	if err != nil {
		return "", err
	}
	if owed := w.talk.countUnacked(); open.Messages > 0 || open.Replies > 0 || open.Schedules > 0 || owed > 0 {
		return fmt.Sprintf("%d messages without an answer, %d replies not sent, %d reminders due, %d messages not acknowledged",
			open.Messages, open.Replies, open.Schedules, owed), nil
	}
	if shown := w.sim.OpenCards(); len(shown) > 0 || open.Cards > 0 {
		return fmt.Sprintf("%d cards unfinished, %d open in the database", len(shown), open.Cards), nil
	}
	if left := w.sim.EmotionsLeft(); len(left) > 0 {
		return fmt.Sprintf("%d thinking marks left", len(left)), nil
	}
	if n := w.erasures.countOpen(); n > 0 {
		return fmt.Sprintf("%d erasures without a receipt", n), nil
	}
	accounts, err := w.eye.Restarts(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range accounts {
		if name := processOf(a.Replica); a.Ending == sessions.Running && !w.isServing(name) {
			return fmt.Sprintf("the account of %s is open, which has ended", name), nil
		}
	}
	for _, s := range w.slots {
		f, err := w.figuresOf(ctx, s.child)
		if err != nil {
			return "", err
		}
		w.calmed[s.child.Name] = f
		if f.goroutines > restGoroutines {
			return fmt.Sprintf("%s has %d goroutines and nothing to do", s.child.Name, f.goroutines), nil
		}
		if f.resident > restResident {
			return fmt.Sprintf("%s holds %.0f MB and has nothing to do", s.child.Name, f.resident/mega), nil
		}
	}
	return "", nil
}

func (w *world) isServing(process string) bool {
	return slices.ContainsFunc(w.slots, func(s *slot) bool { return s.child.Name == process && s.child.Alive() })
}

// Limits of a gateway without work. Its goroutines are a few for each part, pooled connections and the metrics server;
// a leak for each message is hundreds.
const (
	restGoroutines = 100
	restResident   = 300 * mega
)

// stopAll requires exit code 0 of each gateway.
func (w *world) stopAll(ctx context.Context) error {
	for _, s := range w.slots {
		if err := s.requestStop(ctx, s.child); err != nil {
			return err
		}
	}
	w.leaving.Wait()
	return nil
}
