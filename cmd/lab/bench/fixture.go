package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
)

// fixture is the environment of one row.
type fixture struct {
	*suite
	*rig.Askers
	name     string
	dingtalk *dingtalktest.Server
	model    *openaitest.Server
	script   *benchModel
	book     *rig.LogBook
	children []*rig.Process
	flush    time.Duration           // that a stop may spend on memory
	lost     context.CancelCauseFunc // ends the row: a gateway ended by itself
	change   func(map[string]any)    // later gateways; may be nil
}

type gatewayProcess struct {
	*rig.Process
	admin string
	http  *http.Client // logged in to the console, or nil
}

// openFixture starts stand-ins without limits and latency. The context ends with the fixture, and with a gateway that
// ends by itself.
func (b *suite) openFixture(ctx context.Context) (*fixture, context.Context) {
	b.fixtures++
	r := &fixture{suite: b, name: fmt.Sprintf("rig%d", b.fixtures), script: newBenchModel(), book: rig.NewLogBook(), flush: time.Millisecond}
	ctx, r.lost = context.WithCancelCause(ctx)
	r.dingtalk = dingtalktest.New(dingtalktest.Options{
		LatencyMax: dingtalktest.Never, WebhookPerMinute: dingtalktest.Unlimited,
		RedeliverAfter: 3 * time.Second, RedeliverMax: 3,
		Users: []dingtalktest.User{{StaffID: consoleLead}},
	})
	r.model = openaitest.New(openaitest.Options{Reply: r.script.replyTo, Usage: r.script.countUsage, KeepRequests: 1, Lean: true})
	r.Askers = rig.NewAskers(ctx, r.dingtalk, r.name)
	return r, ctx
}

// close stops the gateways cleanly: they leave no work to those of the next row.
func (r *fixture) close(ctx context.Context) error {
	err := rig.StopProcesses(ctx, r.children, 20*time.Second)
	r.lost(nil)
	r.Askers.Close()
	r.model.Close()
	r.dingtalk.Close()
	return err
}

const startLimit = 30 * time.Second

func (r *fixture) startGateway(ctx context.Context) (*gatewayProcess, error) {
	name := fmt.Sprintf("%s-%c", r.name, 'a'+len(r.children))
	live := r.dingtalk.State().Live
	config, err := r.gatewayConfig(name)
	if err != nil {
		return nil, err
	}
	c, err := rig.StartProcess(name, r.program, config, r.book)
	if err != nil {
		return nil, err
	}
	r.children = append(r.children, c)
	go c.ReportLoss(r.lost)
	ctx, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	if err := r.dingtalk.WaitConns(ctx, live+1); err != nil {
		return nil, fmt.Errorf("gateway %s does not connect: %w; its log ends with %q", name, errors.Join(err, context.Cause(ctx)), r.book.LastLines(3))
	}
	line, err := r.book.WaitLine(ctx, name, "Admin server listens")
	if err != nil {
		return nil, err
	}
	admin, _ := line.Fields["admin"].(string)
	return &gatewayProcess{Process: c, admin: admin}, nil
}

// startOne asks a first question, which opens the gateway's connections.
func (r *fixture) startOne(ctx context.Context) (*gatewayProcess, error) {
	g, err := r.startGateway(ctx)
	if err != nil {
		return nil, err
	}
	return g, r.Ask("first", "").Wait(ctx)
}

type processUsage struct {
	cpu        time.Duration // CPU time of its whole life
	allocated  float64       // bytes of its whole life
	resident   float64       // bytes
	goroutines int
}

func (g *gatewayProcess) readUsage(ctx context.Context) (processUsage, error) {
	const (
		cpu, resident         = "process_cpu_seconds_total", "process_resident_memory_bytes"
		allocated, goroutines = "go_memstats_alloc_bytes_total", "go_goroutines"
	)
	m, err := rig.ReadMetrics(ctx, g.admin, cpu, resident, allocated, goroutines)
	if err != nil {
		return processUsage{}, fmt.Errorf("gateway %s: %w", g.Name, err)
	}
	return processUsage{
		cpu: time.Duration(m[cpu] * float64(time.Second)), allocated: m[allocated], resident: m[resident], goroutines: int(m[goroutines]),
	}, nil
}
