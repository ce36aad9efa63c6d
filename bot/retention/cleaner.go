package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/periodic"
)

const (
	checkInterval = time.Second
	// maxPause bounds the pause between two runs, a tenth of the shortest period.
	maxPause = time.Hour
	// batchPause is the time between two batches: turns come first.
	batchPause  = 20 * time.Millisecond
	sessionPage = 100
)

// The kinds of data, as in the configuration.
const (
	Events        = "events"
	Memories      = "memories"
	CompactionLog = "compaction_log"
	Replies       = "replies"
	Schedules     = "schedules"  // ended ones, with the period of replies
	Approvals     = "approvals"  // decided ones, with the period of replies
	SentFiles     = "sent_files" // that no reply will send, with the period of replies, and 7 days at most
	Audit         = "audit"
	Pictures      = "pictures"
)

// Config has the dependencies of a [Cleaner].
type Config struct {
	Store   sessions.Expiry
	Leads   func(context.Context) (bool, error) // whether this replica leads: one is enough
	Periods func() sessions.Retention           // in force
	Metrics prometheus.Registerer
}

// Cleaner deletes data past its period.
type Cleaner struct {
	cfg     Config
	deleted *prometheus.CounterVec
	last    time.Time // start of the last run
}

// New returns a cleaner.
func New(cfg Config) *Cleaner {
	c := &Cleaner{cfg: cfg, deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "ebb", Name: "retention_deleted_total", Help: "Rows that were deleted after their retention period, by data.",
	}, []string{"data"})}
	for _, kind := range []string{Events, Memories, CompactionLog, Replies, SentFiles, Schedules, Audit, Pictures, Approvals} {
		c.deleted.WithLabelValues(kind)
	}
	cfg.Metrics.MustRegister(c.deleted)
	return c
}

// Task returns the background work, in which only the leader deletes.
func (c *Cleaner) Task() periodic.Task {
	return periodic.Task{Interval: checkInterval, Ready: c.due, Do: c.Run, Failure: "Failed to delete expired data"}
}

// A shorter period holds at once.
func (c *Cleaner) due() bool {
	return !time.Now().Before(c.last.Add(pause(c.cfg.Periods())))
}

// pause returns the time between two runs.
func pause(r sessions.Retention) time.Duration {
	least := r.SentFiles()
	for _, period := range []time.Duration{r.Events, r.Memories, r.CompactionLog, r.Audit, r.Pictures} {
		if period > 0 && period < least {
			least = period
		}
	}
	return min(least/10, maxPause)
}

type kind struct {
	name   string
	period func(sessions.Retention) time.Duration
}

var errNoLeader = errors.New("another replica is the leader")

// Run deletes all data past its period. Each batch asks for the period in force and for the lead. A run that is cut
// off leaves the rest to the next one.
func (c *Cleaner) Run(ctx context.Context) error {
	c.last = time.Now()
	deleted := map[string]int{}
	defer func() { c.log(ctx, deleted) }()
	err := c.events(ctx, deleted)
	for _, rows := range []struct {
		kind
		expire func(context.Context, time.Duration) (int, error)
	}{
		{kind{Memories, func(r sessions.Retention) time.Duration { return r.Memories }}, c.cfg.Store.ExpireMemories},
		{kind{CompactionLog, func(r sessions.Retention) time.Duration { return r.CompactionLog }}, c.cfg.Store.ExpireCompactions},
		{kind{Replies, func(r sessions.Retention) time.Duration { return r.Replies }}, c.cfg.Store.ExpireReplies},
		{kind{SentFiles, sessions.Retention.SentFiles}, c.cfg.Store.ExpireSentFiles},
		{kind{Schedules, func(r sessions.Retention) time.Duration { return r.Replies }}, c.cfg.Store.ExpireSchedules},
		{kind{Approvals, func(r sessions.Retention) time.Duration { return r.Replies }}, c.cfg.Store.ExpireApprovals},
		{kind{Audit, func(r sessions.Retention) time.Duration { return r.Audit }}, c.cfg.Store.ExpireActions},
		{kind{Pictures, func(r sessions.Retention) time.Duration { return r.Pictures }}, c.cfg.Store.ExpirePictures},
	} {
		if err == nil {
			err = c.repeat(ctx, rows.kind, deleted, rows.expire)
		}
	}
	if errors.Is(err, errNoLeader) {
		return nil
	}
	return err
}

// events goes through the sessions by key, a page at a time. The period is read again for each batch: a reload that lengthens it ends
// the deletion at once.
func (c *Cleaner) events(ctx context.Context, deleted map[string]int) error {
	events := kind{Events, func(r sessions.Retention) time.Duration { return r.Events }}
	for after := sessions.Key(""); ; {
		period, err := c.inForce(ctx, events)
		if err != nil || period <= 0 {
			return err
		}
		keys, err := c.cfg.Store.ExpiredSessions(ctx, period, after, sessionPage)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := c.repeat(ctx, events, deleted, func(ctx context.Context, period time.Duration) (int, error) {
				n, err := c.cfg.Store.ExpireEvents(ctx, key, period)
				if err != nil {
					err = fmt.Errorf("session %s: %w", key, err)
				}
				return n, err
			}); err != nil {
				return err
			}
			after = key
		}
		if len(keys) < sessionPage {
			return nil
		}
	}
}

// inForce returns a period; 0: the data is kept. The error is errNoLeader on a replica that does not lead.
func (c *Cleaner) inForce(ctx context.Context, k kind) (time.Duration, error) {
	period := k.period(c.cfg.Periods())
	if period <= 0 {
		return 0, nil
	}
	leads, err := c.cfg.Leads(ctx)
	if err == nil && !leads {
		err = errNoLeader
	}
	return period, err
}

func (c *Cleaner) repeat(ctx context.Context, k kind, deleted map[string]int, expire func(context.Context, time.Duration) (int, error)) error {
	for {
		period, err := c.inForce(ctx, k)
		if err != nil || period <= 0 {
			return err
		}
		n, err := expire(ctx, period)
		if err != nil || n == 0 {
			return err
		}
		deleted[k.name] += n
		c.deleted.WithLabelValues(k.name).Add(float64(n))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(batchPause):
		}
	}
}

func (c *Cleaner) log(ctx context.Context, deleted map[string]int) {
	if len(deleted) == 0 {
		return
	}
	e := zerolog.Ctx(ctx).Info()
	for kind, n := range deleted {
		e = e.Int(kind, n)
	}
	e.Msg("Expired data deleted")
}
