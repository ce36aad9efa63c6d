package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
)

var faultKinds = []chaosKind{
	{"kill", 24, injector.killGateway},
	{"kill all", 2, injector.killAll},
	{"stop", 12, injector.replaceGateway},
	{"stop twice", 3, injector.stopTwice},
	{"stop frozen", 4, injector.stopFrozen},
	{"freeze", 10, injector.freezeGateway},
	{"network cut", 10, injector.cutNetwork},
	{"network slow", 5, injector.slowNetwork},
	{"postgres restart", 3, injector.restartPostgres},
	{"postgres crash", 2, injector.crashPostgres},
	{"postgres cut", 5, injector.cutPostgres},
	{"postgres stall", 4, injector.stallPostgres},
	{"stream", 12, injector.spoilStream},
	{"all half-open", 2, injector.halfOpenAll},
	{"webhook", 12, injector.spoilWebhook},
	{"webhooks expire", 3, injector.expireWebhooks},
	{"month used up", 4, injector.useUpMonth},
	{"model", 8, injector.spoilModel},
	{"provider", 8, injector.changeProvider},
	{"redeliver", 6, injector.redeliverMessages},
	{"burst", 4, injector.sendBurst},
}

var nodeKinds = []chaosKind{{"node stop", 12, injector.stopNode}}

// erasureKinds are requests to erase, beside the faults.
var erasureKinds = []chaosKind{
	{"forget last", 3, injector.eraseLast},
	{"forget me", 2, injector.erasePerson},
	{"forget fact", 3, injector.eraseFact},
}

// planFaults draws the schedule, the seed's only influence on gateways.
func planFaults(opt Command) []fault {
	kinds := slices.Clone(faultKinds)
	if opt.Cards {
		kinds = slices.Concat(faultKinds, cardKinds)
	}
	if opt.Database != "" {
		kinds = slices.DeleteFunc(kinds, func(k chaosKind) bool { return k.kind == "postgres restart" || k.kind == "postgres crash" })
	}
	if opt.NodeStop != "" {
		kinds = append(kinds, nodeKinds...)
	}
	var plan []fault
	draw := func(kinds []chaosKind, from, every time.Duration, stream uint64) {
		plan = append(plan, drawFaults(opt, kinds, from, every, rand.New(rand.NewPCG(opt.Seed, stream)))...)
	}
	if !opt.Calm {
		draw(kinds, 0, opt.Every, 3)
		draw(erasureKinds, 0, opt.Erase, 4)
		draw(reminderKinds, 0, opt.Remind, 5)
		draw(attachKinds, 0, opt.Attach, 7)
		draw(toolKinds, 0, opt.Tools, 8)
	}
	draw(harmKinds, opt.For/2, opt.Harm, 6)
	slices.SortStableFunc(plan, func(x, y fault) int { return cmp.Compare(x.at, y.at) })
	return plan
}

// drawFaults draws one fault after each interval on average, from a time on.
func drawFaults(opt Command, kinds []chaosKind, from, every time.Duration, rng *rand.Rand) []fault {
	if every == 0 {
		return nil
	}
	sum := 0
	for _, t := range kinds {
		sum += t.weight
	}
	var plan []fault
	for at := from + every; at < opt.For; at += every/2 + time.Duration(rng.Int64N(int64(every))) {
		t := fault{at: at, slot: rng.IntN(opt.Replicas), d: 200*time.Millisecond + time.Duration(rng.Int64N(int64(4*time.Second))), n: rng.IntN(1000)}
		pick := rng.IntN(sum)
		for _, k := range kinds {
			if pick -= k.weight; pick < 0 {
				t.kind = k.kind
				break
			}
		}
		plan = append(plan, t)
	}
	return plan
}

func (w injector) injectFault(ctx context.Context, t fault) {
	for _, k := range slices.Concat(faultKinds, cardKinds, nodeKinds, erasureKinds, reminderKinds, attachKinds, toolKinds, harmKinds) {
		if k.kind != t.kind {
			continue
		}
		began := time.Now()
		err := k.make(w, ctx, t)
		if err != nil && ctx.Err() == nil {
			w.addBroken("trouble %q: %v", t.kind, err)
		}
		w.mu.Lock()
		w.done[t.kind]++
		w.mu.Unlock()
		fmt.Fprintf(w.out, "%8s  %-17s %s", time.Since(w.began).Round(100*time.Millisecond), t.kind, w.slots[t.slot].name)
		fmt.Fprintf(w.out, "  %s %d  (%s)\n", t.d.Round(time.Millisecond), t.n, time.Since(began).Round(time.Millisecond))
	}
}

// killGateway kills a gateway, and starts another in its place.
func (w injector) killGateway(ctx context.Context, t fault) error {
	s := w.slots[t.slot]
	w.noteCrash(false)
	if err := s.killProcess(); err != nil {
		return err
	}
	return s.startProcess(ctx)
}

func (w injector) killAll(ctx context.Context, _ fault) error {
	w.noteCrash(true)
	for _, s := range w.slots {
		if err := s.killProcess(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.done["kill"] += len(w.slots)
	w.mu.Unlock()
	for _, s := range w.slots {
		if err := s.startProcess(ctx); err != nil {
			return err
		}
	}
	return nil
}

// replaceGateway starts the new gateway first, as a rolling restart does. The old one ends in the background.
func (w injector) replaceGateway(ctx context.Context, t fault) error {
	s := w.slots[t.slot]
	old := s.child
	if err := s.startProcess(ctx); err != nil {
		return err
	}
	return s.requestStop(ctx, old)
}

// stopTwice sends a second signal, which ends the process at once as a kill does.
func (w injector) stopTwice(ctx context.Context, t fault) error {
	s := w.slots[t.slot]
	old := s.child
	s.lives.changeLife(old.Name, func(l *life) { l.twice = true })
	if err := w.replaceGateway(ctx, t); err != nil {
		return err
	}
	rig.WaitUntil(ctx, time.Now().Add(t.d/8))
	return old.Terminate()
}

// stopFrozen asks a frozen process to stop; it handles the signal when it wakes up.
func (w injector) stopFrozen(ctx context.Context, t fault) error {
	s := w.slots[t.slot]
	s.freezeFor(s.child, t.d+time.Duration(t.n%2)*chaosTTL)
	return w.replaceGateway(ctx, t)
}

// freezeGateway freezes a process for longer or shorter than a lease lives.
func (w injector) freezeGateway(_ context.Context, t fault) error {
	s := w.slots[t.slot]
	s.freezeFor(s.child, t.d+2*time.Duration(t.n%2)*chaosTTL)
	return nil
}

// cutNetwork separates a gateway from the database for longer or shorter than a lease lives.
func (w injector) cutNetwork(_ context.Context, t fault) error {
	s := w.slots[t.slot]
	d := t.d + 2*time.Duration(t.n%2)*chaosTTL
	s.setApart(s.child, d+apartFor)
	s.link.Cut(d, t.n%3 == 0)
	return nil
}

func (w injector) slowNetwork(_ context.Context, t fault) error {
	w.setRough(2 * t.d)
	w.slots[t.slot].link.Slow(200*time.Millisecond, 2*t.d)
	return nil
}

func (w injector) restartPostgres(ctx context.Context, t fault) error {
	return w.withoutPostgres(ctx, 10*time.Second, t.d)
}

// crashPostgres kills the server: it recovers from its log.
func (w injector) crashPostgres(ctx context.Context, t fault) error {
	return w.withoutPostgres(ctx, 0, t.d/4)
}

// withoutPostgres stops the server for a while. The first replica that reconnects may find a living one dead.
func (w injector) withoutPostgres(ctx context.Context, within, d time.Duration) error {
	from := time.Now()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.apart = append(w.apart, rig.Interval{From: from, To: time.Now().Add(apartFor)})
	}()
	if err := w.stopPostgres(ctx, within); err != nil {
		return err
	}
	rig.WaitUntil(ctx, time.Now().Add(d))
	return w.startPostgres(ctx)
}

// stopNode stops a node of the cluster for a while, longer or shorter than a lease lives.
func (w injector) stopNode(ctx context.Context, t fault) error {
	from := time.Now()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.apart = append(w.apart, rig.Interval{From: from, To: time.Now().Add(apartFor)})
	}()
	if err := runShell(ctx, w.opt.NodeStop); err != nil {
		return err
	}
	rig.WaitUntil(ctx, time.Now().Add(t.d))
	return runShell(context.WithoutCancel(ctx), w.opt.NodeUp)
}

func runShell(ctx context.Context, command string) error {
	if out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput(); err != nil { //nolint:gosec // the operator's own
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// setRough allows turns to fail for a while.
func (w injector) setRough(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rough = append(w.rough, rig.Interval{From: time.Now(), To: time.Now().Add(d + apartFor)})
}

func (w injector) cutPostgres(ctx context.Context, _ fault) error {
	w.setRough(0)
	_, err := w.eye.Cut(ctx)
	return err
}

func (w injector) stallPostgres(ctx context.Context, t fault) error {
	w.setRough(t.d / 2)
	err := w.eye.Stall(ctx, t.d/2)
	if err != nil && w.opt.NodeStop != "" { // the coordinator had a connection of before a stop
		err = w.eye.Stall(ctx, t.d/2)
	}
	return err
}

// spoilStream injects faults of DingTalk's stream connections.
func (w injector) spoilStream(_ context.Context, t fault) error {
	conn := ""
	if conns := w.sim.Connections(); len(conns) > 0 && t.n%4 > 0 {
		conn = conns[t.n%len(conns)].ID
	}
	switch t.n % 9 {
	case 0:
		w.sim.Restart(t.d / 2)
	case 1:
		w.sim.Disconnect(dingtalktest.DisconnectOptions{Conn: conn})
	case 2:
		w.sim.Disconnect(dingtalktest.DisconnectOptions{Conn: conn, NoMessageID: true, KeepDelivering: true})
	case 3:
		w.sim.Drop(dingtalktest.DropOptions{Conn: conn})
	case 4:
		w.sim.Drop(dingtalktest.DropOptions{Conn: conn, How: dingtalktest.DropFIN})
	case 5:
		w.sim.Drop(dingtalktest.DropOptions{Conn: conn, Code: 1001})
	case 6:
		w.sim.HalfOpen(conn)
	case 7:
		w.sim.LoseNext(conn, 1+t.n%3)
	case 8:
		w.sim.RefuseConnections(t.d / 2)
	}
	return nil
}

// halfOpenAll makes the network to DingTalk swallow everything.
func (w injector) halfOpenAll(context.Context, fault) error {
	w.sim.HalfOpen("")
	return nil
}

// badWebhooks are answers of the webhook, some of them after the reply was posted.
var badWebhooks = []string{"busy", "rate-limited", "500", "502", "html", "truncated", "reset-before", "reset-after", "posted-timeout", "hang", "app-qps"}

func (w injector) spoilWebhook(_ context.Context, t fault) error {
	w.sim.AddFault(dingtalktest.Fault{
		Route: dingtalktest.RouteWebhook, Action: dingtalktest.Do(badWebhooks[t.n%len(badWebhooks)]), Count: 1 + t.n%4,
	})
	return nil
}

// expireWebhooks ends all webhooks: owed replies use the open API.
func (w injector) expireWebhooks(context.Context, fault) error {
	w.sim.ExpireWebhooks("")
	return nil
}

func (w injector) spoilModel(_ context.Context, t fault) error {
	w.mind.spoilFor(t.n, t.d)
	return nil
}

// providers are behaviours of providers that gateways learn, or whose answers they correct. Each one leaves people their answers.
var providers = []string{
	"alternating_roles", "content_required", "no_tools", "no_tool_role", "id_format", "max_output:4096", "no_stream_options",
	"text_calls:hermes", "labels", "speaks_for_others", "summary_reply", "reports_zero", "reports_huge", "usage_per_chunk", "money",
}

// changeProvider makes the endpoint behave like two providers for a while. A gateway keeps the forms that it learned.
func (w injector) changeProvider(_ context.Context, t fault) error {
	first := t.n % len(providers)
	second := (first + 1 + t.n/len(providers)%(len(providers)-1)) % len(providers)
	w.model.Behave(providers[first], providers[second])
	time.AfterFunc(2*t.d, func() { w.model.Behave() })
	return nil
}

// redeliverMessages repeats pushes, acknowledged or not.
func (w injector) redeliverMessages(_ context.Context, t fault) error {
	for _, id := range w.talk.someMarks(1 + t.n%20) {
		w.sim.Redeliver(id, dingtalktest.RedeliverOptions{Times: 1 + t.n%3, Everywhere: t.n%2 == 0, SameFrameID: t.n%5 == 0})
	}
	return nil
}

func (w injector) sendBurst(_ context.Context, t fault) error {
	for range 30 + t.n%70 {
		w.talk.sayNext()
	}
	return nil
}

// endFaults ends lasting faults.
func (w injector) endFaults(ctx context.Context) {
	w.sim.ClearFaults()
	w.mind.spoilFor(0, 0)
	w.model.Behave()
	w.months.end()
	for _, s := range w.slots {
		if !s.child.Alive() {
			if err := s.startProcess(ctx); err != nil {
				w.addBroken("%v", err)
			}
		}
	}
}
