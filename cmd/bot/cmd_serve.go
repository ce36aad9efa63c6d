package main

import (
	"context"
	"errors"
	"runtime"

	"ebb/bot/config"
	"ebb/cmd/bot/gateway"
)

type serveCmd struct {
	configFlag
}

const heapFloor = 24 << 20

// Run serves until a signal, then drains.
func (c serveCmd) Run(ctx context.Context, app *App) error {
	load := func() (*config.Config, error) { return config.Load(c.Config, app.Getenv, config.NeedServe) }
	cfg, err := load()
	if err != nil {
		return err
	}
	// Garbage is collected when the heap has doubled, and a gateway's is small: its turns would fill it several times a second. This part
	// of it is never written, so it takes no memory.
	floor := make([]byte, heapFloor)
	defer runtime.KeepAlive(floor)
	log, level, flush := gateway.NewServiceLogger(cfg.Log, app.Stderr)
	defer flush()
	err = gateway.Serve(log.WithContext(ctx), cfg, gateway.Options{
		Version: version, Reload: gateway.Reload{Signals: app.Hangups, Load: load, Level: level},
	})
	if console, _ := gateway.LogFormat(cfg.Log, app.Stderr); err == nil || console || ofCaller(err) {
		return err
	}
	log.Error().Err(err).Msg("Stopped by a fault") // a JSON line, for alerts on the level
	return errReported
}

// ofCaller reports whether the caller can correct the error, in the command line or the config.
func ofCaller(err error) bool {
	var usage usageError
	var config *config.Error
	return errors.As(err, &usage) || errors.As(err, &config)
}
