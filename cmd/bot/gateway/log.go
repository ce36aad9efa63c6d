package gateway

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"ebb/bot/config"
)

// LogFormat reports whether the log on w is readable lines instead of JSON, and whether w is a terminal.
func LogFormat(c config.LogConfig, w io.Writer) (console, terminal bool) {
	f, isFile := w.(*os.File)
	terminal = isFile && isatty.IsTerminal(f.Fd())
	return c.Format == "console" || c.Format == "auto" && terminal, terminal
}

// LogLevel is the lowest level that a logger and its children write. It can change while they are in use.
type LogLevel struct{ least atomic.Int32 }

// Sample implements zerolog.Sampler.
func (l *LogLevel) Sample(level zerolog.Level) bool { return int32(level) >= l.least.Load() }

// Set sets the level by its name in the configuration; an unknown one is info.
func (l *LogLevel) Set(name string) {
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		level = zerolog.InfoLevel
	}
	l.least.Store(int32(level))
}

// NewLogger returns a logger of JSON lines, or of readable lines on a terminal, and its level.
func NewLogger(cfg config.LogConfig, w io.Writer) (zerolog.Logger, *LogLevel) {
	return loggerTo(cfg, lineWriter(cfg, w))
}

// NewServiceLogger is [NewLogger] with at most one line a minute for each failure. The caller calls flush at the end, for the counts
// that are left.
func NewServiceLogger(cfg config.LogConfig, w io.Writer) (log zerolog.Logger, level *LogLevel, flush func()) {
	r := newRepeats(lineWriter(cfg, w))
	log, level = loggerTo(cfg, r)
	return log, level, r.close
}

func lineWriter(cfg config.LogConfig, w io.Writer) io.Writer {
	console, terminal := LogFormat(cfg, w)
	if console {
		return zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !terminal}
	}
	return w
}

func loggerTo(cfg config.LogConfig, w io.Writer) (zerolog.Logger, *LogLevel) {
	level := &LogLevel{}
	level.Set(cfg.Level)
	zerolog.TimeFieldFormat = time.RFC3339Nano
	return zerolog.New(w).Level(zerolog.TraceLevel).Sample(level).With().Timestamp().Logger(), level
}
