package main

import (
	"context"
	"fmt"

	"ebb/sql"
)

// migrateCmd is bot migrate.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"withargs" help:"Bring the schema up to date."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations and which are done."`
}

type migrateUpCmd struct{ configFlag }

// Run applies what is pending.
func (c migrateUpCmd) Run(ctx context.Context, app *App) error {
	return withDatabase(ctx, app, c.configFlag, func(url string) error {
		done, err := sql.Migrate(ctx, url)
		if err != nil {
			return err
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
	return withDatabase(ctx, app, c.configFlag, func(url string) error {
		all, err := sql.Status(ctx, url)
		if err != nil {
			return err
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

// withDatabase calls do with the address of the configured database, a private one started for the time being.
func withDatabase(ctx context.Context, app *App, f configFlag, do func(url string) error) error {
	cfg, err := Load(f.Config, app.Getenv, NeedNothing)
	if err != nil {
		return err
	}
	if url := cfg.Database.URL.Reveal(); url != "" {
		return do(url)
	}
	log := newLogger(LogConfig{Level: "warn", Format: "auto"}, app.Stderr)
	p, err := sql.StartPrivate(log.WithContext(ctx), sql.PrivateOptions{Dir: cfg.Database.Dir})
	if err != nil {
		return err
	}
	defer func() { _ = p.Stop(context.WithoutCancel(ctx)) }() // the data is safe whether or not it stops in time
	return do(p.URL())
}
