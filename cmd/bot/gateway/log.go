package gateway

import (
	"io"
	"os"
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

// NewLogger returns a logger of JSON lines, or of readable lines on a terminal.
func NewLogger(cfg config.LogConfig, w io.Writer) zerolog.Logger {
	level, err := zerolog.ParseLevel(cfg.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	if console, terminal := LogFormat(cfg, w); console {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !terminal}
	}
	zerolog.TimeFieldFormat = time.RFC3339Nano
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}
