package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"ebb/cmd/lab/local"
	"ebb/cmd/lab/rig"
	"ebb/sql"
	"ebb/sql/localpg"
	"ebb/sql/yardstick"
)

// benchConns is the default of database.max_conns.
const benchConns = 16

type suite struct {
	dir      string // temporary
	program  string
	private  *localpg.Server
	yard     *yardstick.Yardstick
	store    *sql.Store
	perTurn  float64 // durable commits a turn; 0 until measured
	fixtures int     // number so far, for names

	locomo   string // folder with dialogues; empty for synthetic ones
	appendix string // text of a row besides its figures
}

// The caller closes the result even after an error.
func openBench(ctx context.Context, program string) (b *suite, err error) {
	b = &suite{program: program}
	if b.dir, err = local.MakeTempDir("ebb-bench-"); err != nil {
		return b, err
	}
	if b.private, err = local.StartServer(ctx, b.dir, false); err != nil {
		return b, err
	}
	if b.yard, err = yardstick.Open(ctx, b.private.URL(), benchConns); err != nil {
		return b, err
	}
	b.store, err = sql.Open(ctx, sql.Options{URL: b.private.URL(), MaxConns: 4})
	return b, err
}

func (b *suite) close(ctx context.Context) error {
	if b.store != nil {
		b.store.Close()
	}
	if b.yard != nil {
		b.yard.Close()
	}
	return local.RemoveServer(ctx, b.private, b.dir)
}

// onOwnServer fills another PostgreSQL, without waits for its disk. A restart with options precedes the measurement,
// unless they are nil.
func (b *suite) onOwnServer(
	ctx context.Context, name string, fill func(context.Context, string) error, restart *localpg.Options,
	measure func(*localpg.Server) ([]rig.Figure, error),
) (figures []rig.Figure, err error) {
	o := localpg.Options{Dir: filepath.Join(b.dir, name), NoSync: true}
	server, err := localpg.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Discard(context.WithoutCancel(ctx))) }()
	if err := fill(ctx, server.URL()); err != nil {
		return nil, err
	}
	if restart != nil {
		if err := server.Stop(ctx); err != nil {
			return nil, err
		}
		restart.Dir = o.Dir
		again, err := localpg.Start(ctx, *restart)
		if err != nil {
			return nil, err
		}
		server = again
	}
	return measure(server)
}

// A limit of 0 stands for none.
func p95Figure(name string, took []time.Duration, limit time.Duration) rig.Figure {
	p95 := rig.Quantile(took, 0.95)
	f := rig.Figure{Name: name, Measured: fmt.Sprintf("%s, p50 %s", rig.FormatMillis(p95), rig.FormatMillis(rig.Median(took)))}
	if limit == 0 {
		return f
	}
	f.Target = "<= " + rig.FormatMillis(limit)
	return f.AtMost(float64(p95), float64(limit))
}

func (b *suite) describeMachine(ctx context.Context) (string, error) {
	version, durable, err := b.yard.Server(ctx)
	if err != nil {
		return "", err
	}
	sync := "fsync off: these figures are worth nothing"
	if durable {
		sync = "fsync on"
	}
	var took []time.Duration
	for range 300 {
		began := time.Now()
		if err := b.yard.Commit(ctx, 0); err != nil {
			return "", err
		}
		took = append(took, time.Since(began))
	}
	line := fmt.Sprintf("%d cores, %s %s/%s, PostgreSQL %s, %s; one commit alone p50 %s, p99 %s", runtime.NumCPU(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH, version, sync, rig.FormatMillis(rig.Median(took)), rig.FormatMillis(rig.Quantile(took, 0.99)))
	if text, err := os.ReadFile("/proc/loadavg"); err == nil { // without the file, the line is shorter
		load, _, _ := strings.Cut(string(text), " ")
		line += "; load before " + load
	}
	return line + "\nsimulator, model (latency 0) and PostgreSQL run on the same cores", nil
}

// commitCeiling counts units of some commits.
func (b *suite) commitCeiling(ctx context.Context, d time.Duration, workers, commits int) (float64, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	units := 0
	began := time.Now()
	for w := range workers {
		wg.Go(func() {
			n := 0
			for time.Since(began) < d && ctx.Err() == nil {
				for range commits {
					if err := b.yard.Commit(ctx, w); err != nil {
						stop(err)
						return
					}
				}
				n++
			}
			mu.Lock()
			defer mu.Unlock()
			units += n
		})
	}
	wg.Wait()
	return float64(units) / time.Since(began).Seconds(), context.Cause(ctx)
}

// gatewayConfig has the defaults, without DingTalk's limits.
func (r *fixture) gatewayConfig(name string) (string, error) {
	type object = map[string]any
	c := object{
		"dingtalk": object{
			"client_id": rig.RobotCode, "client_secret": rig.AppSecret, "api_base": r.dingtalk.URL, "oapi_base": r.dingtalk.URL,
			"replies_per_minute": 0,
		},
		"llm": object{"models": []object{{
			"name": "main", "model": "scripted", "base_url": r.model.URL, "api_key": "none",
		}}},
		"cluster":  object{"replica_id": name},
		"agent":    object{"gather": "0s"}, // the gateway's own time is measured
		"database": object{"url": r.private.URL(), "max_conns": benchConns},
		"shutdown": object{"flush": r.flush.String()},
		"admin":    object{"listen": "127.0.0.1:0", "token": benchToken},
		"log":      object{"level": "info", "format": "json"},
	}
	if r.change != nil {
		r.change(c)
	}
	return rig.WriteConfig(r.dir, name, c)
}
