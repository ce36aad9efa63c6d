package main

import (
	"context"
	"errors"
	"runtime/debug"

	"ebb/bot/config"
	"ebb/bot/config/strict"
	"ebb/cmd/bot/gateway"
)

type serveCmd struct {
	configFlag
}

const gcPercent = 200

// Run serves until a signal, then drains.
func (c serveCmd) Run(ctx context.Context, app *App) error {
	load := func() (*config.Config, error) { return config.Load(c.Config, app.Getenv, config.NeedServe) }
	cfg, err := load()
	if err != nil {
		return err
	}
	// A gateway's heap is small: with Go's default of 100 its turns would have it collected several times a second. Each collection
	// goes through the 200,000 strings of the token table.
	if app.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
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
	var config *strict.Error
	return errors.As(err, &usage) || errors.As(err, &config)
}
