package main

import (
	"context"
	"fmt"

	"ebb/bot/config"
	"ebb/cmd/bot/gateway"
	"ebb/sql"
	"ebb/sql/localpg"
)

// migrateCmd is bot migrate.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"withargs" help:"Bring the schema up to date."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations and which are done."`
}

type migrateUpCmd struct{ configFlag }

// Run applies pending migrations.
func (c migrateUpCmd) Run(ctx context.Context, app *App) error {
	return withNewDatabase(ctx, app, c.configFlag, func(_ *config.Config, url string) error {
		done, err := sql.Migrate(ctx, url)
		if err != nil {
			return gateway.DatabaseFault(err)
		}
		for _, m := range done {
			fmt.Fprintf(app.Stdout, "done     %05d %s\n", m.Version, m.Name)
		}
		if len(done) == 0 {
			fmt.Fprintln(app.Stdout, "nothing to do: the schema is up to date")
		}
		return nil
	})
}

type migrateStatusCmd struct{ configFlag }

// Run lists migrations.
func (c migrateStatusCmd) Run(ctx context.Context, app *App) error {
	return withDatabase(ctx, app, c.configFlag, func(_ *config.Config, url string) error {
		all, err := sql.Status(ctx, url)
		if err != nil {
			return gateway.DatabaseFault(err)
		}
		for _, m := range all {
			state := "pending "
			if m.Applied {
				state = "applied "
			}
			fmt.Fprintf(app.Stdout, "%s %05d %s\n", state, m.Version, m.Name)
		}
		return nil
	})
}

// withDatabase calls do with the config and the address of its database. It starts a private database temporarily, but
// never creates one: a wrong directory is an error.
func withDatabase(ctx context.Context, app *App, f configFlag, do func(cfg *config.Config, url string) error) error {
	cfg, err := config.Load(f.Config, app.Getenv, config.NeedNothing)
	if err != nil {
		return err
	}
	if cfg.Database.URL == "" {
		made, err := localpg.Made(cfg.Database.Dir)
		if err != nil {
			return err
		}
		if !made {
			return usageError{fmt.Errorf("there is no database in %s yet; bot serve makes it", cfg.Database.Dir)}
		}
	}
	return useDatabase(ctx, app, cfg, do)
}

// withNewDatabase is withDatabase for commands that may create a private database.
func withNewDatabase(ctx context.Context, app *App, f configFlag, do func(cfg *config.Config, url string) error) error {
	cfg, err := config.Load(f.Config, app.Getenv, config.NeedNothing)
	if err != nil {
		return err
	}
	return useDatabase(ctx, app, cfg, do)
}

func useDatabase(ctx context.Context, app *App, cfg *config.Config, do func(cfg *config.Config, url string) error) error {
	log := gateway.NewLogger(config.LogConfig{Level: "warn", Format: "auto"}, app.Stderr)
	url, stop, err := database(log.WithContext(ctx), cfg.Database)
	if err != nil {
		return err
	}
	defer stop()
	return do(cfg, url)
}

// database returns the address of the configured database. The private one is that of a running bot, or is started
// until stop is called.
func database(ctx context.Context, cfg config.DatabaseConfig) (url string, stop func(), err error) {
	if url := cfg.Direct().Reveal(); url != "" {
		return url, func() {}, nil
	}
	if url, err = localpg.Running(ctx, cfg.Dir); url != "" || err != nil {
		return url, func() {}, err
	}
	p, err := localpg.Start(ctx, localpg.Options{Dir: cfg.Dir})
	if err != nil {
		return "", nil, err
	}
	// The data is safe even if the stop times out.
	return p.URL(), func() { _ = p.Stop(context.WithoutCancel(ctx)) }, nil
}
