package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// benchCmd is lab bench: it measures on this machine what the design promises.
type benchCmd struct {
	All    benchAllCmd    `cmd:"" default:"withargs" help:"Measure row after row and print them as one table."`
	Replay benchReplayCmd `cmd:"" help:"Compare only what compaction policies cost, and draw it."`
}

// benchAllCmd measures row after row and prints them as one table.
type benchAllCmd struct {
	Only []string `help:"Only these rows: commits, turns, latency, history, tokens, upkeep, replay, takeover, restart, memory, search." placeholder:"ROW"`
}

// benchRow is one thing to measure, which may give several lines of the table.
type benchRow struct {
	name    string
	measure func(*bench, context.Context) ([]figure, error)
}

// benchRows are in the order in which they are measured. What needs a quiet server comes first; ten thousand sessions
// and a million entries come last.
var benchRows = []benchRow{
	{"commits", (*bench).commits},
	{"turns", (*bench).turns},
	{"latency", (*bench).latency},
	{"history", (*bench).history},
	{"tokens", (*bench).tokens},
	{"upkeep", (*bench).upkeep},
	{"replay", (*bench).replay},
	{"takeover", (*bench).takeover},
	{"restart", (*bench).restart},
	{"memory", (*bench).memory},
	{"search", (*bench).search},
}

// Run measures row after row, each with gateways of its own on one PostgreSQL, and prints the table. A row that could
// not be measured says why in the table, and makes the exit code 1; a target that is not reached does not.
func (c benchAllCmd) Run(ctx context.Context, app *App) (err error) {
	for _, name := range c.Only {
		if !slices.ContainsFunc(benchRows, func(r benchRow) bool { return r.name == name }) {
			return usageError{fmt.Errorf("bench: there is no row %q", name)}
		}
	}
	if err := app.checkProgram(); err != nil {
		return err
	}
	b, err := openBench(ctx, app.Program)
	defer func() { err = joinStop(err, b.close(ctx)) }()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	b.locomo = app.Getenv(locomoVariable)
	head, err := b.machine(ctx)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var all []figure
	failed := false
	for _, row := range benchRows {
		if len(c.Only) > 0 && !slices.Contains(c.Only, row.name) {
			continue
		}
		fmt.Fprintf(app.Stderr, "%-9s", row.name)
		began := time.Now()
		figures, err := row.measure(b, ctx)
		if ctx.Err() != nil {
			fmt.Fprintln(app.Stderr)
			return fmt.Errorf("bench: ended by %w", context.Cause(ctx))
		}
		if err != nil {
			failed = true
			figures = append(figures, figure{what: row.name, reached: "not measured: " + strings.ReplaceAll(err.Error(), "\n", "; ")})
		}
		fmt.Fprintf(app.Stderr, "%5.1f s\n", time.Since(began).Seconds())
		all = append(all, figures...)
	}
	fmt.Fprintf(app.Stdout, "\n%s\n\n%s%s", head, drawTable(all), b.appendix)
	if failed {
		return errReported
	}
	return nil
}

// benchReplayCmd is lab bench replay: the row of that name alone.
type benchReplayCmd struct {
	Plot string `help:"Draw the figures into this SVG file." placeholder:"FILE"`
}

// Run replays every policy, prints what it costs, and draws it where asked to.
func (c benchReplayCmd) Run(ctx context.Context, app *App) (err error) {
	if err := app.checkProgram(); err != nil {
		return err
	}
	b, err := openBench(ctx, app.Program)
	defer func() { err = joinStop(err, b.close(ctx)) }()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	b.locomo = app.Getenv(locomoVariable)
	all, err := b.compare(ctx)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	fmt.Fprintf(app.Stdout, "%s\n%s", drawTable(all.figures()), all.table())
	if c.Plot == "" {
		return nil
	}
	if err := os.WriteFile(c.Plot, []byte(all.plot()), 0o644); err != nil { //nolint:gosec // a picture for everybody
		return fmt.Errorf("bench: writing the plot: %w", err)
	}
	return nil
}

// joinStop keeps the error that ended the work first, and adds what did not stop cleanly.
func joinStop(err, stop error) error {
	switch {
	case stop == nil:
		return err
	case err == nil:
		return fmt.Errorf("bench: stopping: %w", stop)
	}
	return fmt.Errorf("%w; then stopping: %w", err, stop)
}
