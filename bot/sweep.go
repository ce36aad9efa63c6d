package bot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/leader"
	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/bot/turn"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
	"ebb/sessions/serial"
)

// firstBeat retries while the database is unavailable. It returns false if ctx ends first.
func firstBeat(ctx context.Context, s *parts.Shared) bool {
	err := retry.Do(ctx, retry.Pauses{First: 100 * time.Millisecond, Max: time.Second}, func() error {
		one, stop := context.WithTimeout(ctx, s.CommitTimeout)
		defer stop()
		err := s.Leases.Beat(one)
		if err != nil {
			periodic.LogFailure(ctx, err, "Failed to write the first heartbeat, trying again")
		}
		return err
	})
	return err == nil
}

// The sweep makes up for lost wake-ups.
const (
	sweepLimit = 200

	sweepFailed = "Sweep for waiting sessions failed"
)

// sweeper wakes sessions with waiting messages, by notifications and by looks at the storage.
type sweeper struct {
	shared *parts.Shared
	inbox  sessions.Inbox
	turns  *serial.Mailboxes
	outbox *outbox.Outbox
	runner *turn.Runner
	stream *leader.Stream
	lost   lostSessions
	// leaseTTL is the time in which a dead replica's lease expires.
	leaseTTL time.Duration
}

func (s *sweeper) sweep(ctx context.Context) error {
	for _, l := range s.runner.Running() {
		if !s.shared.Leases.Owns(l) { // a replica that was cut off may have lost it
			s.runner.Look(l.Key)
		}
	}
	if err := s.revive(ctx); err != nil {
		return err
	}
	keys, err := s.inbox.Waiting(ctx, s.shared.Leases.Owner(), sweepLimit)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if s.turns.Busy(key) {
			continue // a turn answers its messages
		}
		s.outbox.Invalidate(key)
		s.turns.Wake(key)
	}
	return nil
}

// revive creates deleted sessions again. One with a turn is left to the replica that runs it, for the time in which a dead
// replica's lease expires: every living one looks more often.
func (s *sweeper) revive(ctx context.Context) error {
	turns, err := s.inbox.Revive(ctx, append(s.runner.Running(), s.lost.expired(s.leaseTTL)...))
	if err != nil {
		return err
	}
	s.lost.note(turns)
	return nil
}

// lostSessions are deleted sessions with a message in a turn, by the time of the first look.
type lostSessions struct {
	mu    sync.Mutex
	since map[sessions.Key]time.Time
}

// expired returns a lease without an owner for each session that was lost for the given time.
func (s *lostSessions) expired(after time.Duration) (leases []sessions.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, at := range s.since {
		if time.Since(at) >= after {
			leases = append(leases, sessions.Lease{Key: key})
		}
	}
	return leases
}

func (s *lostSessions) note(keys []sessions.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.since
	s.since = map[sessions.Key]time.Time{}
	for _, key := range keys {
		s.since[key] = before[key]
		if s.since[key].IsZero() {
			s.since[key] = time.Now()
		}
	}
}

func (s *sweeper) sweepNow(ctx context.Context) {
	one, stop := context.WithTimeout(ctx, s.shared.CommitTimeout)
	defer stop()
	if err := s.sweep(one); err != nil {
		periodic.LogFailure(ctx, err, sweepFailed)
	}
}

// listen passes on wake-ups of other replicas. It reconnects at once after a connection that listened, otherwise after
// a pause.
func (s *sweeper) listen(ctx context.Context) {
	pauses := retry.Storage.Start()
	var heard atomic.Bool
	for {
		err := s.inbox.Listen(ctx, s.shared.Leases.Owner(), func(key sessions.Key) {
			heard.Store(true)
			if key == "" {
				s.stream.Changed()
				go guard.Run(ctx, guard.Task, func() { s.sweepNow(ctx) })
				return
			}
			s.runner.Wake(key)
		})
		if ctx.Err() != nil {
			return
		}
		if heard.Swap(false) {
			pauses.Reset()
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Notifications broke off, listening again")
		if !retry.Sleep(ctx, pauses.NextBackOff()) {
			return
		}
	}
}
