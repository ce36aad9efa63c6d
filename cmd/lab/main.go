// Command lab is the equipment around Ebb: the demo, the benchmarks, fault injection and the evaluation of search. It runs
// bot as a program of its own, and nothing of it is linked into bot.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the zones of agent.timezone, for machines without zoneinfo

	"github.com/alecthomas/kong"
)

// Exit codes of every command.
const (
	exitFault = 1
	exitUsage = 2 // the command line has to be changed before another try makes sense
)

// App is the world outside a command: its streams, the environment, and the bot to run.
type App struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Program string // path of the bot
}

// commands is the grammar of the command line.
type commands struct {
	Program string `type:"path" default:"bin/bot" placeholder:"FILE" help:"The bot to run; make build makes it."`

	Demo  demoCmd  `cmd:"" help:"Show the whole of Ebb on this machine, with nothing to configure: DingTalk and model are stand-ins."`
	Bench benchCmd `cmd:"" help:"Measure on this machine what the design promises."`
	Chaos chaosCmd `cmd:"" help:"Run fault injection and check that nothing is lost."`
	Eval  evalCmd  `cmd:"" help:"Search data with known answers through the bot's own search."`
}

// usageError marks an error of the command line: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// errReported ends a command with exit code 1 when its output already says what is wrong.
var errReported = errors.New("reported")

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is, and stays so
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(execute(ctx, os.Args[1:], &App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}))
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, app *App) (code int) {
	exited := -1
	var grammar commands
	parser := kong.Must(&grammar, kong.Name("lab"), kong.Description("The equipment around Ebb."), kong.UsageOnError(),
		kong.Writers(app.Stdout, app.Stderr), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(app))
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		err = usageError{err}
	} else {
		app.Program = grammar.Program
		err = command.Run()
	}
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return exitFault
	case errors.As(err, &usage):
		code = exitUsage
	default:
		code = exitFault
	}
	fmt.Fprintf(app.Stderr, "lab: %v\n", err)
	return code
}

// checkProgram reports a bot that is not there before anything is started.
func (a *App) checkProgram() error {
	if _, err := os.Stat(a.Program); err != nil {
		return usageError{fmt.Errorf("no bot to run (%w): make build makes bin/bot, --program names another", err)}
	}
	return nil
}
