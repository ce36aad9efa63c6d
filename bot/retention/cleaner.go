package retention

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/periodic"
	"ebb/sessions"
)

const (
	// checkInterval is the time between two checks whether a run is due.
	checkInterval = time.Second
	// maxPause is the longest time between two runs. Shorter periods have shorter pauses, a tenth of the shortest one.
	maxPause = time.Hour
	// batchPause is the time between two batches: turns come first.
	batchPause = 20 * time.Millisecond
	// sessionPage is the number of sessions that are listed at a time.
	sessionPage = 100
)

// The kinds of data, as in the configuration.
const (
	Events        = "events"
	Memories      = "memories"
	CompactionLog = "compaction_log"
	Replies       = "replies"
	Audit         = "audit"
)

// Config has the dependencies of a [Cleaner].
type Config struct {
	Store   sessions.Expiry
	Replica sessions.ReplicaID
	Periods func() sessions.Retention // in force
	Metrics prometheus.Registerer
}

// Cleaner deletes data past its period.
type Cleaner struct {
	cfg     Config
	deleted *prometheus.CounterVec
	next    time.Time // start of the next run
}

// New returns a cleaner.
func New(cfg Config) *Cleaner {
	c := &Cleaner{cfg: cfg, deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "ebb", Name: "retention_deleted_total", Help: "Rows that were deleted after their retention period, by data.",
	}, []string{"data"})}
	for _, kind := range []string{Events, Memories, CompactionLog, Replies, Audit} {
		c.deleted.WithLabelValues(kind)
	}
	cfg.Metrics.MustRegister(c.deleted)
	return c
}

// Task returns the background work. Each replica has it, and only the leader deletes.
func (c *Cleaner) Task() periodic.Task {
	return periodic.Task{
		Interval: checkInterval,
		Ready:    func() bool { return pause(c.cfg.Periods()) > 0 && !time.Now().Before(c.next) },
		Leads: func(ctx context.Context) (bool, error) {
			c.next = time.Now().Add(pause(c.cfg.Periods()))
			return c.cfg.Store.IsLeader(ctx, c.cfg.Replica)
		},
		Do:      c.Run,
		Failure: "Failed to delete expired data",
	}
}

// pause returns the time between two runs; 0: all data is kept.
func pause(r sessions.Retention) time.Duration {
	least := time.Duration(0)
	for _, period := range []time.Duration{r.Events, r.Memories, r.CompactionLog, r.Replies, r.Audit} {
		if period > 0 && (least == 0 || period < least) {
			least = period
		}
	}
	return min(least/10, maxPause)
}

// Run deletes all data that is past its period now. A run that is cut off leaves the rest to the next one.
func (c *Cleaner) Run(ctx context.Context) error {
	r := c.cfg.Periods()
	deleted := map[string]int{}
	defer func() { c.log(ctx, deleted) }()
	if r.Events > 0 {
		if err := c.events(ctx, r.Events, deleted); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		name   string
		period time.Duration
		expire func(context.Context, time.Duration) (int, error)
	}{
		{Memories, r.Memories, c.cfg.Store.ExpireMemories},
		{CompactionLog, r.CompactionLog, c.cfg.Store.ExpireCompactions},
		{Replies, r.Replies, c.cfg.Store.ExpireReplies},
		{Audit, r.Audit, c.cfg.Store.ExpireActions},
	} {
		if kind.period <= 0 {
			continue
		}
		if err := c.repeat(ctx, kind.name, deleted, func() (int, error) { return kind.expire(ctx, kind.period) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cleaner) events(ctx context.Context, period time.Duration, deleted map[string]int) error {
	for after := sessions.Key(""); ; {
		keys, err := c.cfg.Store.ExpiredSessions(ctx, period, after, sessionPage)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := c.repeat(ctx, Events, deleted, func() (int, error) { return c.cfg.Store.ExpireEvents(ctx, key, period) }); err != nil {
				return err
			}
			after = key
		}
		if len(keys) < sessionPage {
			return nil
		}
	}
}

// repeat deletes batches until one is empty.
func (c *Cleaner) repeat(ctx context.Context, kind string, deleted map[string]int, batch func() (int, error)) error {
	for {
		n, err := batch()
		if err != nil || n == 0 {
			return err
		}
		deleted[kind] += n
		c.deleted.WithLabelValues(kind).Add(float64(n))
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
