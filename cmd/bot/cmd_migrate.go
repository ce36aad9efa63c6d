package main

import (
	"context"
	"fmt"

	"ebb/bot/config"
	"ebb/cmd/bot/gateway"
	"ebb/sql"
)

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

// withNewDatabase may create a private database.
func withNewDatabase(ctx context.Context, app *App, f configFlag, do func(cfg *config.Config, url string) error) error {
	cfg, err := config.Load(f.Config, app.Getenv, config.NeedNothing)
	if err != nil {
		return err
	}
	return useDatabase(ctx, app, cfg, do)
}
