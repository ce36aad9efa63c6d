package config

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/bot/config/strict"
	"ebb/bot/schedule"
	"ebb/bot/schedule/when"
	"ebb/sql"
)

// ScheduleConfig is about reminders.
type ScheduleConfig struct {
	// Enabled allows reminders. Stored ones wait while it is false.
	Enabled bool `json:"enabled"`
	// QuietHours, such as "22:00-08:00", postpone repeated reminders and scheduled questions to their end. A single
	// reminder is sent at its time.
	QuietHours string `json:"quiet_hours"`
}

// ClusterConfig has the settings of replicas on one database.
type ClusterConfig struct {
	// LeaseTTL is the age of a heartbeat at which other replicas take over, at least 1 s.
	LeaseTTL time.Duration `json:"lease_ttl"`
	// ReplicaID names this process. Empty: generated at each start.
	ReplicaID string `json:"replica_id"`
}

// DatabaseConfig has the addresses of PostgreSQL.
type DatabaseConfig struct {
	// URL is a PostgreSQL URL or keyword string. Empty: a private server in Dir.
	URL DSN `json:"url"`
	// DirectURL is the server behind a pooler, for migrations and notifications. Empty: URL.
	DirectURL DSN `json:"direct_url"`
	// Pooler is "none", PostgreSQL itself behind URL, or "transaction", a transaction pooler such as PgBouncer, which
	// requires DirectURL.
	Pooler string `json:"pooler"`
	// Dir holds the private server's data.
	Dir string `json:"dir"`
	// Migrate runs pending migrations at the start.
	Migrate bool `json:"migrate"`
	// MaxConns bounds the pool, besides one connection that listens, two for heartbeats and four for the console, at least 2.
	MaxConns int `json:"max_conns"`
}

// Values of database.pooler.
const (
	poolerNone        = "none"
	PoolerTransaction = "transaction"
)

// ShutdownConfig bounds the two long phases of a clean stop. Intake takes up to 3 s to end before them, and cleanup a
// few seconds after them.
type ShutdownConfig struct {
	// Drain bounds the wait for turns in flight, more than 0.
	Drain time.Duration `json:"drain"`
	// Flush bounds the flushes after that, more than 0.
	Flush time.Duration `json:"flush"`
	// Grace is the time that the supervisor waits before it kills: at least drain, flush and 10 s together.
	Grace time.Duration `json:"grace"`
}

// LogConfig is for the log on standard error.
type LogConfig struct {
	// Level is trace, debug, info, warn or error.
	Level string `json:"level"`
	// Format is json, console, or auto: console on a terminal, otherwise json.
	Format string `json:"format"`
}

func (s ScheduleConfig) check(k *strict.Source) {
	const want = `hours such as "22:00-08:00", or "" for none`
	_, err := when.ParseQuiet(s.QuietHours)
	k.Expects("schedule.quiet_hours", want)
	k.Want(err == nil, "schedule.quiet_hours", strconv.Quote(s.QuietHours), "%s", want)
}

// Settings returns the scheduler's settings.
func (s ScheduleConfig) Settings() schedule.Settings {
	quiet, _ := when.ParseQuiet(s.QuietHours) // checked before
	return schedule.Settings{Enabled: s.Enabled, Quiet: quiet}
}

var replicaIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,63}$`)

func (c *ClusterConfig) check(k *strict.Source) {
	k.Want(c.LeaseTTL >= time.Second, "cluster.lease_ttl", strict.DurationText(c.LeaseTTL), "at least 1s")
	k.Want(replicaIDForm.MatchString(c.ReplicaID), "cluster.replica_id", strconv.Quote(c.ReplicaID),
		"at most 63 letters, digits, dots, dashes and underscores")
}

// Direct returns the server's own address, behind any pooler.
func (d *DatabaseConfig) Direct() DSN { return cmp.Or(d.DirectURL, d.URL) }

// Most unreadable addresses have an unescaped special character in the password.
const databaseForm = "postgres://user:password@host:5432/name, with / @ # ? of a password as %2F %40 %23 %3F" //nolint:gosec // an example

// check refuses a pooler in transaction mode without a direct address. Migrations take a lock of a connection, and notifications need
// one that stays.
func (d *DatabaseConfig) check(k *strict.Source) {
	address := func(path string, dsn DSN, otherwise string) {
		if url := dsn.Reveal(); url != "" {
			fault := sql.AddressFault(url)
			switch {
			case strings.Contains(url, ":"+mask+"@"):
				fault = mask + ", which stands for a password where a configuration is printed"
			case strings.Contains(url, "://") && strings.TrimSpace(url) != url:
				fault = "an address with blanks around it"
			}
			k.Want(fault == "", path, fault, "%s, or empty %s", databaseForm, otherwise)
		}
	}
	address("database.url", d.URL, "for a private server")
	address("database.direct_url", d.DirectURL, "where database.url leads to the server itself")
	k.OneOf("database.pooler", d.Pooler, []string{poolerNone, PoolerTransaction})
	if d.Pooler == PoolerTransaction {
		k.Want(d.URL != "", "database.url", "nothing", "the pooler's address, as database.pooler is \"transaction\"")
		k.Want(d.DirectURL != "", "database.direct_url", "nothing",
			"the address of PostgreSQL itself: migrations and notifications can't go through a pooler in transaction mode")
		k.Advise(d.URL == "" || d.DirectURL != d.URL, "database.direct_url",
			"is the same as database.url: migrations and notifications can't go through a pooler in transaction mode")
	}
	if d.URL == "" {
		k.Required("database.dir", d.Dir, "a folder for the private server's data")
		k.Want(d.DirectURL == "", "database.direct_url", "an address", "nothing, as database.url is empty")
	}
	k.Between("database.max_conns", d.MaxConns, 2, 1000)
}

// stopRest is the time of a stop besides drain and flush: the end of intake, and the cleanup.
const stopRest = 10 * time.Second

// check wants the parts of a stop to fit into grace: the supervisor kills a longer one. The error is at the first of the three keys that the
// file has.
func (s *ShutdownConfig) check(k *strict.Source) {
	k.Positive("shutdown.drain", s.Drain)
	k.Positive("shutdown.flush", s.Flush)
	k.Positive("shutdown.grace", s.Grace)
	whole := s.Drain + s.Flush + stopRest
	for _, path := range []string{"shutdown.grace", "shutdown.drain", "shutdown.flush"} {
		if k.IsGiven(path) && whole > s.Grace {
			k.Fail(path, "drain %s and flush %s, with %s for the rest of a stop, take longer than shutdown.grace (%s): want at least %s there, and as much of the supervisor",
				strict.DurationText(s.Drain), strict.DurationText(s.Flush), strict.DurationText(stopRest), strict.DurationText(s.Grace), strict.DurationText(whole))
			break
		}
	}
}

func (l *LogConfig) check(k *strict.Source) {
	k.OneOf("log.level", l.Level, []string{"trace", "debug", "info", "warn", "error"})
	k.OneOf("log.format", l.Format, []string{"auto", "json", "console"})
}
