// Command bot is Ebb, a DingTalk group bot with long-term memory. `bot serve` runs the gateway; other commands are for
// operators. The documentation of package bot is the tour of the code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"
	_ "time/tzdata" // time zones for machines and images without zoneinfo

	"github.com/alecthomas/kong"

	"ebb/bot/config/strict"
	"ebb/bot/media/document"
)

// cli has a type with a Run method for each command, in its own cmd_*.go.
type cli struct {
	Serve       serveCmd       `cmd:"" help:"Run the gateway until a signal, then drain."`
	Init        initCmd        `cmd:"" help:"Ask for what a first configuration needs, write it, and check it."`
	Chat        chatCmd        `cmd:"" help:"Talk with the configured model in the terminal: same engine, same commands."`
	Migrate     migrateCmd     `cmd:"" help:"Bring the database's schema up to date, or show its state."`
	Doctor      doctorCmd      `cmd:"" help:"Check config, database, model, DingTalk and clock, one line each."`
	Sessions    sessionsCmd    `cmd:"" help:"List, show or export sessions."`
	Compactions compactionsCmd `cmd:"" help:"The compaction log: ranges, triggers and outcomes."`
	Debts       debtsCmd       `cmd:"" help:"List flushes that are owed to memory, and why they failed."`
	DeadLetters deadLettersCmd `cmd:"" name:"deadletters" help:"List messages that were set aside, or have one answered after all."`
	Calls       callsCmd       `cmd:"" help:"List the counted calls to DingTalk's open API, or resume calls that were refused for the month."`
	Restarts    restartsCmd    `cmd:"" help:"Figures of each process, from its start to its end: drained, flushed, owed, resumed."`
	Memory      memoryCmd      `cmd:"" help:"List, show, export, forget or promote memories."`
	Config      configCmd      `cmd:"" help:"Check a config file, or print the effective one."`
	Healthcheck healthCmd      `cmd:"" hidden:"" help:"Ask a running bot whether it is alive; for the health check of a container."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
	VersionFlag versionFlag    `name:"version" help:"Print the version."`
}

// versionFlag is the same as the command.
type versionFlag bool

// BeforeReset implements kong's hook: it prints the version, whatever else is on the command line.
func (versionFlag) BeforeReset(k *kong.Kong, app *App) error {
	if err := (versionCmd{}).Run(app); err != nil {
		return err
	}
	k.Exit(exitOK)
	return nil
}

func main() {
	if os.Getenv(document.ChildVariable) != "" {
		os.Exit(document.RunChild())
	}
	app := &App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	ctx, cancel := context.WithCancelCause(context.Background())
	if len(os.Args) > 1 && os.Args[1] == "serve" { // from the first moment: a reload during the start is no stop
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		app.Hangups = hangups
	}
	listening := make(chan struct{})
	go awaitSignals(cancel, app, os.Exit, listening)
	<-listening
	os.Exit(execute(ctx, os.Args[1:], app))
}

// awaitSignals closes ready when it listens.
func awaitSignals(cancel context.CancelCauseFunc, app *App, exit func(int), ready chan<- struct{}) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	if app.Hangups == nil && !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP, which stays ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	close(ready)
	handleSignals(signals, cancel, app.Stderr, exit)
}

// sameStop is the time after the first signal in which others count as the same stop: a supervisor may signal a
// process and then its group.
const sameStop = time.Second

// The first signal ends the context, one later than sameStop the process.
func handleSignals(signals <-chan os.Signal, cancel context.CancelCauseFunc, stderr io.Writer, exit func(int)) {
	cancel(fmt.Errorf("signal: %v", <-signals))
	began := time.Now()
	for s := range signals {
		if time.Since(began) < sameStop {
			continue
		}
		fmt.Fprintf(stderr, "bot: second signal (%v), leaving at once\n", s)
		exit(exitFault)
		return
	}
}

// execute parses and runs one command. The library calls for an exit on --help and goes on, which is caught here: deferred work must
// run.
func execute(ctx context.Context, args []string, app *App) int {
	var exited *int // exit code of --help; kong continues after it
	parser, err := kong.New(&cli{},
		kong.Name("bot"),
		kong.Description("Ebb, a DingTalk group bot that does not forget."),
		kong.Writers(app.Stdout, app.Stderr),
		kong.Exit(func(code int) { exited = &code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(app),
	)
	if err != nil {
		return reportError(app.Stderr, fmt.Errorf("building the command line: %w", err))
	}
	args = canonical(args)
	cmd, err := parser.Parse(args)
	switch {
	case exited != nil:
		return *exited
	case err != nil:
		return reportError(app.Stderr, usageError{fmt.Errorf("%w; bot --help lists the commands", err)})
	}
	return reportError(app.Stderr, cmd.Run())
}

func canonical(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

func reportError(stderr io.Writer, err error) int {
	var config *strict.Error
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFault
	case errors.As(err, &config):
		fmt.Fprintln(stderr, config) // file:line:col at the start of the line, for editors
		return exitUsage
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "bot: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "bot: %v\n", err)
		return exitFault
	}
}

type versionCmd struct{}

// Run prints the version, the commit if known, and the Go release.
func (versionCmd) Run(app *App) error {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	_, err := fmt.Fprintf(app.Stdout, "bot %s%s %s\n", version, commit, runtime.Version())
	return err
}
