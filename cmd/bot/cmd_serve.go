package main

import "context"

// serveCmd is bot serve.
type serveCmd struct {
	configFlag
}

// Run serves until a signal, then drains.
func (c serveCmd) Run(ctx context.Context, app *App) error {
	cfg, err := Load(c.Config, app.Getenv, NeedServe)
	if err != nil {
		return err
	}
	log := newLogger(cfg.Log, app.Stderr)
	return serve(log.WithContext(ctx), cfg, options{})
}
