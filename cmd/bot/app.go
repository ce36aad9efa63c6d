package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"time"

	"ebb/bot/config"
	"ebb/bot/manage"
	"ebb/cmd/bot/gateway"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/localpg"
)

// Exit codes of every command.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2 // the command line or config must change first
)

// App is a command's environment.
type App struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	// Hangups delivers SIGHUP to a command that loads its configuration again; nil: SIGHUP stops the command.
	Hangups <-chan os.Signal
}

// usageError marks an error as the caller's: exit code 2.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// errReported ends a command with exit code 1 after its output has described the fault.
var errReported = errors.New("reported")

type listFlags struct {
	configFlag
	JSON  bool `help:"One JSON object a line."`
	Limit int  `default:"50" help:"Maximum number of rows (default: ${default})."`
}

type columns[V any] func(clock) (head string, row func(V) string)

func listRows[T, V any](
	ctx context.Context, app *App, f listFlags, read func(context.Context, *sql.Store, int) ([]T, error), view func(T) V, show columns[V],
) error {
	return withStore(ctx, app, f.configFlag, func(s *sql.Store, at clock) error {
		all, err := read(ctx, s, f.Limit)
		if err != nil {
			return err
		}
		head, row := show(at)
		return table(app.Stdout, f.JSON, views(all, view), head, row)
	})
}

// withStore makes the output [printable]: members and models wrote parts of it.
func withStore(ctx context.Context, app *App, f configFlag, do func(*sql.Store, clock) error) error {
	return withConfiguredStore(ctx, app, f, func(_ *config.Config, s *sql.Store, at clock) error { return do(s, at) })
}

func withConfiguredStore(ctx context.Context, app *App, f configFlag, do func(*config.Config, *sql.Store, clock) error) error {
	return withDatabase(ctx, app, f, func(cfg *config.Config, url string) error {
		zone, err := time.LoadLocation(cfg.Agent.Timezone)
		if err != nil {
			return fmt.Errorf("agent.timezone: %w", err)
		}
		s, err := sql.Open(ctx, sql.Options{URL: url, MaxConns: 2})
		if err != nil {
			return gateway.DatabaseFault(err)
		}
		defer s.Close()
		app.Stdout = &printable{out: app.Stdout}
		return needSchema(ctx, url, do(cfg, s, clock{zone}))
	})
}

var operator = manage.Actor{Role: manage.Operator, Name: "cli:" + userName()}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func withManager(ctx context.Context, app *App, f configFlag, do func(m *manage.Manager, s *sql.Store, at clock) error) error {
	return withConfiguredStore(ctx, app, f, func(cfg *config.Config, s *sql.Store, at clock) error { return do(gateway.Manager(cfg, s), s, at) })
}

// needSchema says so if the schema is older or newer than the program. The server's error would name missing tables and
// columns.
func needSchema(ctx context.Context, url string, err error) error {
	if usage := (usageError{}); err == nil || errors.As(err, &usage) {
		return err
	}
	if old := gateway.OldSchema(ctx, url); errors.Is(old, sql.ErrOldSchema) {
		return old
	}
	if newer, found := errors.AsType[sql.NewerError](sql.CheckNewer(ctx, url)); found {
		return fmt.Errorf("%w (%w)", err, newer)
	}
	return err
}

type configFlag struct {
	Config string `short:"c" default:"config.jsonc" placeholder:"FILE" help:"The config file (default: ${default})."`
}

// withDatabase starts a private database temporarily, but never creates one: a wrong directory is an error.
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

func noSession(key string, err error) error {
	if errors.Is(err, sessions.ErrNotFound) {
		return usageError{fmt.Errorf("there is no session %q; bot sessions list shows the keys", key)}
	}
	return ofSession(key, err)
}

// ofSession names the session of an error: the storage does not, since lines of a log have a field for it.
func ofSession(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("session %s: %w", key, err)
}

// version is set by the linker in a release: -X main.version=1.2.3.
var version = "dev"

func useDatabase(ctx context.Context, app *App, cfg *config.Config, do func(cfg *config.Config, url string) error) error {
	log, _ := gateway.NewLogger(config.LogConfig{Level: "warn", Format: "auto"}, app.Stderr)
	url, stop, err := database(log.WithContext(ctx), cfg.Database)
	if err != nil {
		return err
	}
	defer stop()
	return do(cfg, url)
}

// The private database is started until stop, unless a bot runs it.
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
