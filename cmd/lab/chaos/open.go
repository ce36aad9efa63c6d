package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"ebb/bot/config"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/local"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/citus"
	"ebb/sql/inspect"
	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

// openChaos starts the stand-ins and the database. The caller closes the result even after an error.
func openChaos(ctx context.Context, opt Command, program string, out io.Writer) (w *world, err error) {
	w = &world{
		opt: opt, program: program, out: out, began: time.Now(), done: map[string]int{}, book: newChaosBook(io.Discard),
		lives: lives{of: map[string]*life{}}, months: months{over: make(chan struct{})}, calmed: map[string]figures{},
	}
	if w.dir, err = local.MakeTempDir("ebb-chaos-"); err != nil {
		return w, err
	}
	if opt.Logs != "" {
		file, err := os.Create(opt.Logs)
		if err != nil {
			return w, fmt.Errorf("opening the file of logs: %w", err)
		}
		w.logs, w.book.copy = file, file
	}
	if err := w.startPostgres(ctx); err != nil {
		return w, err
	}
	if _, err := sql.Migrate(ctx, w.url); err != nil {
		return w, err
	}
	if opt.NodeStop != "" {
		if _, err := sql.Distribute(ctx, w.url, func(citus.Place) {}); err != nil {
			return w, err
		}
	}
	if w.eye, err = inspect.Open(ctx, w.url); err != nil {
		return w, err
	}
	w.plan = planFaults(opt)
	w.sim = dingtalktest.New(dingtalktest.Options{
		Seed: opt.Seed, LatencyMax: dingtalktest.Never, WebhookPerMinute: dingtalktest.Unlimited, OpensPerMinute: 100_000,
		RedeliverAfter: 3 * time.Second, RedeliverMax: dingtalktest.Unlimited, RetryOnError: true, Backlog: time.Minute,
		PingInterval: time.Second, DisconnectGrace: 2 * time.Second, KeepMessages: 2_000_000, IgnoreMsgUUID: w.keysIgnored(),
	})
	w.mind = newChaosModel(rand.New(rand.NewPCG(opt.Seed, 1)))
	w.model = openaitest.New(openaitest.Options{Reply: w.mind.replyTo, Usage: countText, KeepRequests: 1, Found: w.mind.noteIllegal})
	w.talk = newChaosTalk(ctx, w.sim, rand.New(rand.NewPCG(opt.Seed, 2)), !opt.Calm, w.perMember())
	w.talk.people = ordinaryMembers(opt.Harm > 0)
	w.mind.thread = w.talk.threadOf
	for i := range opt.Replicas {
		s := &slot{world: w, name: fmt.Sprintf("g%d", i+1)}
		if s.link, err = sqltest.NewLink(ctx, func() string { return sqltest.SocketOf(w.databaseURL()) }); err != nil {
			return w, err
		}
		w.slots = append(w.slots, s)
	}
	return w, nil
}

func (w *world) close(ctx context.Context) error {
	var err error
	for _, s := range w.slots {
		if s.child != nil && s.child.Alive() {
			err = errors.Join(err, s.child.Kill())
		}
		s.link.Close()
	}
	w.leaving.Wait()
	if w.talk != nil {
		w.talk.close()
	}
	if w.model != nil {
		w.model.Close()
	}
	if w.sim != nil {
		w.sim.Close()
	}
	if w.eye != nil {
		w.eye.Close()
	}
	err = errors.Join(err, w.stopPostgres(ctx, 15*time.Second))
	if w.logs != nil {
		err = errors.Join(err, w.logs.Close())
	}
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

func (w *world) startPostgres(ctx context.Context) error {
	if w.opt.Database != "" {
		w.url = w.opt.Database
		return nil
	}
	p, err := localpg.Start(ctx, localpg.Options{Dir: filepath.Join(w.dir, "pg")})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.private, w.url = p, p.URL()
	return nil
}

// perMember reports whether each member of a group has their own session in this run.
func (w *world) perMember() bool { return w.opt.Seed%3 == 0 }

// keysIgnored reports whether DingTalk repeats a reply with a known key: the documentation promises no deduplication.
func (w *world) keysIgnored() bool { return w.opt.Seed/2%2 == 0 }

// connectionCount is the configured number of connected gateways in this run.
func (w *world) connectionCount() string {
	if w.opt.Seed/4%4 == 1 {
		return config.ConnectionsOne
	}
	return config.ConnectionsAll
}

// stopPostgres stops the server cleanly within a time, and else at once, so that it has to recover.
func (w *world) stopPostgres(ctx context.Context, within time.Duration) error {
	w.mu.Lock()
	p := w.private
	w.private = nil
	w.mu.Unlock()
	if p == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer stop()
	return p.Stop(ctx)
}

const (
	chaosTTL   = 2 * time.Second // lifetime of leases
	chaosDrain = 8 * time.Second // at a stop
	chaosTurn  = 30 * time.Second
	callsOfRun = 1_000_000 // to the open API: counted, and more than a run makes
)

// watchTerms checks repeatedly that no lease's term falls.
func (w *world) watchTerms(ctx context.Context) {
	seen := map[sessions.Key]int64{}
	for rig.WaitUntil(ctx, time.Now().Add(100*time.Millisecond)) {
		one, stop := context.WithTimeout(ctx, 5*time.Second)
		leases, err := w.eye.Terms(one)
		stop()
		if err != nil {
			continue // the database is away: part of the trouble
		}
		for _, l := range leases {
			if l.Term < seen[l.Key] && !w.erasures.deletesThread(l.Key) {
				w.addBroken("session %s: the lease's term fell from %d to %d", l.Key, seen[l.Key], l.Term)
			}
			seen[l.Key] = l.Term
		}
	}
}
