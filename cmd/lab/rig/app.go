package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes of every command.
const (
	ExitFault = 1
	ExitUsage = 2 // the command line must change first
)

// App is the environment of a command, and the bot to run.
type App struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Program string // the bot's path
}

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// UsageError marks err as one of the command line.
func UsageError(err error) error { return usageError{err} }

// ErrReported ends a command with exit code 1 after its output described the failure.
var ErrReported = errors.New("reported")

// CheckProgram reports a missing bot, as a usage error.
func (a *App) CheckProgram() error {
	if _, err := os.Stat(a.Program); err != nil {
		return UsageError(fmt.Errorf("no bot to run (%w): make build makes bin/bot, --program names another", err))
	}
	return nil
}

// Globals are the flags of every command.
type Globals struct {
	Program string `type:"path" default:"bin/bot" placeholder:"FILE" help:"The bot to run; make build makes it."`
}

// program makes Globals a part of each grammar that Execute takes.
func (g *Globals) program() string { return g.Program }

// Grammar is a kong grammar that embeds Globals.
type Grammar interface{ program() string }

// Main executes the command line until a signal ends it.
func Main(grammar Grammar) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	app := &App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	os.Exit(Execute(ctx, grammar, os.Args[1:], app))
}

// Execute runs one command line and returns the exit code.
func Execute(ctx context.Context, grammar Grammar, args []string, app *App) int {
	exited := -1
	parser := kong.Must(grammar, kong.Name("lab"), kong.Description("The equipment around Ebb."), kong.UsageOnError(),
		kong.Writers(app.Stdout, app.Stderr), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(app))
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		err = usageError{err}
	} else {
		app.Program = grammar.program()
		err = command.Run()
	}
	code := ExitFault
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrReported):
		return code
	case errors.As(err, &usage):
		code = ExitUsage
	}
	fmt.Fprintf(app.Stderr, "lab: %v\n", err)
	return code
}

// JoinStopError adds the stop's error to the one that ended the work.
func JoinStopError(err, stop error) error {
	switch {
	case stop == nil:
		return err
	case err == nil:
		return fmt.Errorf("stopping: %w", stop)
	}
	return fmt.Errorf("%w; then stopping: %w", err, stop)
}
