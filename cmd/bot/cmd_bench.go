package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// benchCmd is bot bench: it measures on this machine what the design promises, and prints it as one table.
type benchCmd struct {
	Only []string `help:"Only these rows: commits, turns, latency, history, tokens, upkeep, takeover, restart, memory, later." placeholder:"ROW"`
}

// benchRow is one thing to measure, which may give several lines of the table.
type benchRow struct {
	name    string
	measure func(*bench, context.Context) ([]figure, error)
}

// benchRows are in the order in which they are measured. What needs a quiet server comes first; ten thousand sessions
// come last.
var benchRows = []benchRow{
	{"commits", (*bench).commits},
	{"turns", (*bench).turns},
	{"latency", (*bench).latency},
	{"history", (*bench).history},
	{"tokens", (*bench).tokens},
	{"upkeep", (*bench).upkeep},
	{"takeover", (*bench).takeover},
	{"restart", (*bench).restart},
	{"memory", (*bench).memory},
	{"later", func(*bench, context.Context) ([]figure, error) { return laterFigures(), nil }},
}

// Run measures row after row, each with gateways of its own on one PostgreSQL, and prints the table. A row that could
// not be measured says why in the table, and makes the exit code 1; a target that is not reached does not.
func (c benchCmd) Run(ctx context.Context, app *App) (err error) {
	for _, name := range c.Only {
		if !slices.ContainsFunc(benchRows, func(r benchRow) bool { return r.name == name }) {
			return usageError{fmt.Errorf("bench: there is no row %q", name)}
		}
	}
	b, err := openBench(ctx)
	defer func() { err = joinStop(err, b.close(ctx)) }()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
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
	fmt.Fprintf(app.Stdout, "\n%s\n\n%s", head, drawTable(all))
	if failed {
		return errReported
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
