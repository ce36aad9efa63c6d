package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"ebb/bot/config"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/bot/gateway"
	"ebb/cmd/lab/local"
	"ebb/cmd/lab/rig"
	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

const (
	adminToken  = "admin-of-the-demo"
	viewerToken = "viewer-of-the-demo"
)

// A small window is full after a dozen messages.
const (
	threshold  = 4000
	window     = 16_000
	reserve    = 4000
	share      = 0.175 // a compaction leaves 0.7 of the threshold
	flushRatio = 0.9
)

type stage struct {
	dir      string // temporary
	postgres *localpg.Server
}

// The caller closes the result even after an error.
func openStage(ctx context.Context) (s *stage, err error) {
	s = &stage{}
	if s.dir, err = sqltest.OpenDir("ebb-browsertest-"); err != nil {
		return s, fmt.Errorf("making a folder: %w", err)
	}
	s.postgres, err = local.StartServer(ctx, s.dir, true)
	return s, err
}

// The seeded database must have no connections.
func (s *stage) copyDatabase(ctx context.Context, name string) (string, error) {
	return s.postgres.NewDatabase(ctx, name, "ebb")
}

func (s *stage) close(ctx context.Context) error {
	return local.RemoveServer(ctx, s.postgres, s.dir)
}

type replica struct {
	name     string
	console  string
	dingtalk *dingtalktest.Server
	model    *openaitest.Server
	book     *rig.LogBook
	stop     context.CancelFunc
	ended    chan error
}

// startReplica waits until the gateway serves. Its name is unique on the stage. login, which may be nil, returns the
// keys of logins by DingTalk once the simulator listens.
func (s *stage) startReplica(ctx context.Context, name, url string, login func(*dingtalktest.Server) map[string]any) (*replica, error) {
	r := &replica{
		name: name, book: rig.NewLogBook(), ended: make(chan error, 1),
		dingtalk: dingtalktest.New(dingtalkOptions()), model: openaitest.New(openaitest.Options{Steps: script()}),
	}
	logins := map[string]any{}
	if login != nil {
		logins = login(r.dingtalk)
	}
	cfg, err := s.load(r, url, logins)
	if err != nil {
		return nil, errors.Join(err, r.closeStandIns())
	}
	in, out := io.Pipe()
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	go func() { _ = r.book.ReadLog(name, in) }() // the pipe ends without an error
	go func() {
		err := gateway.Serve(zerolog.New(out).WithContext(run), cfg, gateway.Options{Version: "demo"})
		_ = out.CloseWithError(err) // it never fails
		r.ended <- err
	}()
	line, err := r.book.WaitLine(ctx, name, "Admin server listens")
	if err == nil {
		_, err = r.book.WaitLine(ctx, name, "Serving")
	}
	if err == nil {
		err = r.dingtalk.WaitConns(ctx, 1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gateway %s does not serve: %w", name, err), r.close())
	}
	address, _ := line.Fields["admin"].(string)
	r.console = "http://" + address
	return r, nil
}

func (s *stage) load(r *replica, url string, logins map[string]any) (*config.Config, error) {
	type object = map[string]any
	path, err := rig.WriteConfig(s.dir, r.name, object{
		"dingtalk": object{
			"client_id": rig.RobotCode, "client_secret": rig.AppSecret, "api_base": r.dingtalk.URL, "oapi_base": r.dingtalk.URL,
			"replies_per_minute": repliesPerMinute,
		},
		"llm": object{"models": []object{{
			"name": "main", "model": "qwen-plus", "base_url": r.model.URL, "api_key": "none", "max_output": 2048,
			"price_in": 0.8, "price_cached": 0.16, "price_out": 2,
		}}},
		"agent": object{
			"admins": []string{rig.Zhang.ID}, "timezone": "Asia/Shanghai", "gather": "0s",
			"compaction": object{
				"auto_compact_threshold": threshold, "context_window": window, "reserve_tokens": reserve,
				"max_history_share": share, "flush_ratio": flushRatio,
			},
		},
		"groups": object{
			english.id: object{"admins": []string{rig.Alex.ID}},
			longest.id: object{"compaction": object{"auto_compact_threshold": 80_000, "context_window": 128_000, "reserve_tokens": 20_000}},
		},
		"cluster":  object{"replica_id": r.name},
		"database": object{"url": url},
		"admin":    object{"listen": "127.0.0.1:0", "token": adminToken, "viewer_token": viewerToken, "dingtalk_login": logins},
		"log":      object{"level": "info", "format": "json"},
	})
	if err != nil {
		return nil, err
	}
	return config.Load(path, func(string) string { return "" }, config.NeedServe)
}

func (r *replica) close() error {
	r.stop()
	return errors.Join(<-r.ended, r.closeStandIns())
}

func (r *replica) closeStandIns() error {
	r.model.Close()
	r.dingtalk.Close()
	return nil
}
