package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ebb/bot/config"
	"ebb/bot/wording"
	"ebb/cmd/bot/gateway"
	"ebb/sql"
	"ebb/sql/citus"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"withargs" help:"Bring the schema up to date."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations and which are done, and how the tables are distributed."`

	Distribute migrateDistributeCmd `cmd:"" help:"Distribute the tables over the nodes of a Citus cluster. Stop the gateways first: a table is locked while its rows move."`
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
		switch newer, found := errors.AsType[sql.NewerError](sql.CheckNewer(ctx, url)); {
		case found: // no fault: an older release may be deployed again
			fmt.Fprintf(app.Stdout, "nothing to do: %v\n", newer)
		case len(done) == 0:
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
		newer := sql.CheckNewer(ctx, url)
		if found, is := errors.AsType[sql.NewerError](newer); is {
			fmt.Fprintf(app.Stdout, "newer    %05d of a newer release, whose files this program lacks\n", found.Version)
		} else if newer != nil {
			return gateway.DatabaseFault(newer)
		}
		how, err := sql.Distribution(ctx, url)
		if err != nil {
			return gateway.DatabaseFault(err)
		}
		fmt.Fprintln(app.Stdout, distribution(how))
		return nil
	})
}

type migrateDistributeCmd struct{ configFlag }

// Run distributes tables that are not distributed.
func (c migrateDistributeCmd) Run(ctx context.Context, app *App) error {
	return withDatabase(ctx, app, c.configFlag, func(_ *config.Config, url string) error {
		moved := 0
		_, err := sql.Distribute(ctx, url, func(p citus.Place) {
			moved++
			if p.Kind == citus.Reference {
				fmt.Fprintf(app.Stdout, "done     %s: a copy on each node\n", p.Table)
				return
			}
			fmt.Fprintf(app.Stdout, "done     %s: by %s\n", p.Table, p.Key)
		})
		if err != nil {
			return gateway.DatabaseFault(err)
		}
		if moved == 0 {
			fmt.Fprintln(app.Stdout, "nothing to do: the tables are distributed")
		}
		return nil
	})
}

// distribution says in one line how the tables are distributed.
func distribution(s *citus.State) string {
	switch {
	case !s.Distributed() && s.Cluster:
		return "tables   not distributed: bot migrate distribute does it"
	case !s.Distributed():
		return "tables   on one server"
	}
	text := wording.Count("tables   %d distributed in %d shard{|s} each, %d with a copy on each node, %d on the coordinator",
		s.Count(citus.Distributed), s.Shards, s.Count(citus.Reference), s.Count(citus.Local))
	if err := findUndistributed(s); err != nil {
		text += "; " + err.Error()
	}
	return text
}

// findUndistributed names the tables that are not distributed though others are.
func findUndistributed(s *citus.State) error {
	if !s.Distributed() || len(s.Missing) == 0 {
		return nil
	}
	names := make([]string, len(s.Missing))
	for i, p := range s.Missing {
		names[i] = p.Table
	}
	return fmt.Errorf("not distributed: %s: run bot migrate distribute", strings.Join(names, ", "))
}

// withNewDatabase may create a private database.
func withNewDatabase(ctx context.Context, app *App, f configFlag, do func(cfg *config.Config, url string) error) error {
	cfg, err := config.Load(f.Config, app.Getenv, config.NeedNothing)
	if err != nil {
		return err
	}
	return useDatabase(ctx, app, cfg, do)
}
