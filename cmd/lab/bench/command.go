package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ebb/cmd/lab/replay"
	"ebb/cmd/lab/rig"
)

// Command is lab bench.
type Command struct {
	All    allCommand    `cmd:"" default:"withargs" help:"Measure row after row and print them as one table."`
	Replay replayCommand `cmd:"" help:"Compare only what compaction policies cost, and draw it."`
}

type allCommand struct {
	Only []string `help:"Only these rows: commits, turns, kinds, server, latency, history, tokens, upkeep, replay, takeover, restart, memory, files, search, erasure, console." placeholder:"ROW"`
}

type benchRow struct {
	name    string
	measure func(*suite, context.Context) ([]rig.Figure, error)
}

// Rows that need a quiet server come first; millions of entries come last.
var benchRows = []benchRow{
	{"commits", (*suite).measureCommits},
	{"turns", (*suite).measureTurns},
	{"kinds", (*suite).measureKinds},
	{"server", (*suite).measureServer},
	{"latency", (*suite).measureLatency},
	{"history", (*suite).measureHistory},
	{"tokens", (*suite).measureTokens},
	{"upkeep", (*suite).measureUpkeep},
	{"replay", (*suite).measureReplay},
	{"takeover", (*suite).measureTakeover},
	{"restart", (*suite).measureRestart},
	{"memory", (*suite).measureMemory},
	{"files", (*suite).measureFiles},
	{"search", (*suite).measureSearch},
	{"erasure", (*suite).measureErasure},
	{"console", (*suite).measureConsole},
}

// Run measures each row with its own gateways on one PostgreSQL, and prints the table. A row that could not be
// measured makes the exit code 1; a missed target does not.
func (c allCommand) Run(ctx context.Context, app *rig.App) error {
	for _, name := range c.Only {
		if !slices.ContainsFunc(benchRows, func(r benchRow) bool { return r.name == name }) {
			return rig.UsageError(fmt.Errorf("bench: there is no row %q", name))
		}
	}
	return withBench(ctx, app, func(b *suite) error { return c.measure(ctx, app, b) })
}

func (c allCommand) measure(ctx context.Context, app *rig.App, b *suite) error {
	head, err := b.describeMachine(ctx)
	if err != nil {
		return err
	}
	var all []rig.Figure
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
			return fmt.Errorf("ended by %w", context.Cause(ctx))
		}
		if err != nil {
			failed = true
			figures = append(figures, rig.Figure{Name: row.name, Reached: "not measured: " + strings.ReplaceAll(err.Error(), "\n", "; ")})
		}
		fmt.Fprintf(app.Stderr, "%5.1f s\n", time.Since(began).Seconds())
		all = append(all, figures...)
	}
	fmt.Fprintf(app.Stdout, "\n%s\n\n%s%s", head, rig.FormatFigures(all), b.appendix)
	if failed {
		return rig.ErrReported
	}
	return nil
}

type replayCommand struct {
	Plot string `help:"Draw the figures into this SVG file." placeholder:"FILE"`
}

// Run prints the costs of every policy, and draws them where asked to.
func (c replayCommand) Run(ctx context.Context, app *rig.App) error {
	return withBench(ctx, app, func(b *suite) error {
		all, err := replay.Compare(ctx, b.private, b.locomo)
		if err != nil {
			return err
		}
		fmt.Fprintf(app.Stdout, "%s\n%s", rig.FormatFigures(all.Figures()), all.FormatTable())
		if c.Plot == "" {
			return nil
		}
		if err := os.WriteFile(c.Plot, []byte(all.DrawSVG()), 0o644); err != nil { //nolint:gosec // a picture for everybody
			return fmt.Errorf("writing the plot: %w", err)
		}
		return nil
	})
}

func withBench(ctx context.Context, app *rig.App, do func(*suite) error) (err error) {
	if err := app.CheckProgram(); err != nil {
		return err
	}
	b, err := openBench(ctx, app.Program)
	defer func() { err = rig.JoinStopError(err, b.close(ctx)) }()
	if err == nil {
		b.locomo = app.Getenv(replay.DataVariable)
		err = do(b)
	}
	if err != nil && !errors.Is(err, rig.ErrReported) {
		err = fmt.Errorf("bench: %w", err)
	}
	return err
}

// The costs of every policy become a table of their own.
func (b *suite) measureReplay(ctx context.Context) ([]rig.Figure, error) {
	c, err := replay.Compare(ctx, b.private, b.locomo)
	if err != nil {
		return nil, err
	}
	b.appendix = "\n" + c.FormatTable()
	return c.Figures(), nil
}
