package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"ebb/bot/parts"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/periodic"
)

const (
	// requestInterval is short: a person waits for the compaction.
	requestInterval = 2 * time.Second
	// maxRequestAttempts is the number of attempts after which a request is dropped: its process died each time.
	maxRequestAttempts = 3
)

// requests executes compactions that people asked for.
type requests struct {
	asked    sessions.CompactionRequests
	sessions Sessions
	store    Compactions
	shared   *parts.Shared
	slots    *semaphore.Weighted // those of upkeep
	compact  func(ctx context.Context, l sessions.Lease, asked *Request, waiting int, needed func(sessions.View) sessions.Trigger) (Compacted, error)
}

// compactAll executes as many requests at a time as upkeep has slots.
func (u requests) compactAll(ctx context.Context) error {
	list, err := u.asked.CompactionRequests(ctx, u.shared.Leases.Owner(), pageSize)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	errs := make([]error, len(list))
	for i, r := range list {
		if err := u.slots.Acquire(ctx, 1); err != nil {
			break // the process stops
		}
		running.Go(func() {
			defer u.slots.Release(1)
			if err := guard.Do(ctx, guard.Session, func() error { return u.compactOne(ctx, r) }); err != nil {
				errs[i] = fmt.Errorf("session %s: %w", r.Key, err)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// compactOne leaves a request to another replica that has the session by now.
func (u requests) compactOne(ctx context.Context, r sessions.CompactionRequest) error {
	err := u.shared.Leases.Do(ctx, r.Key, func(l sessions.Lease) error {
		log := zerolog.Ctx(ctx).With().EmbedObject(r.Key).Int64("term", l.Term).Logger()
		return u.attempt(log.WithContext(ctx), l, r)
	})
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	return err
}

// attempt keeps a request whose compaction did not begin, or whose lease was lost: no row of the compaction log has it.
func (u requests) attempt(ctx context.Context, l sessions.Lease, r sessions.CompactionRequest) error {
	attempt, err := u.asked.StartRequest(ctx, l)
	if err != nil {
		return err
	}
	if attempt > maxRequestAttempts {
		zerolog.Ctx(ctx).Warn().Int("attempts", r.Attempts).Msg("Requested compaction dropped: no attempt ended")
		if err := u.logDropped(ctx, l, r); err != nil {
			return err
		}
		return u.asked.EndRequest(ctx, l, attempt)
	}
	done, err := u.compact(ctx, l, &Request{Focus: r.Focus, Settings: r.Settings, By: r.RequestedBy}, 0, func(sessions.View) sessions.Trigger { return TriggerManual })
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a stop: the next owner repeats it
	}
	if errors.Is(err, sessions.ErrLeaseLost) {
		return cmp.Or(u.asked.ReturnRequest(ctx, l, attempt), err)
	}
	if err != nil && !NothingToCompact(err) {
		periodic.LogFailure(ctx, err, "Requested compaction failed")
	}
	if err != nil && done.Outcome == "" {
		return u.asked.ReturnRequest(ctx, l, attempt)
	}
	return u.asked.EndRequest(ctx, l, attempt)
}

// logDropped records a failed compaction. It sets neither a time nor a size from which automatic ones may run. Below a
// size that is set already, those by count rest, as after any failure.
func (u requests) logDropped(ctx context.Context, l sessions.Lease, r sessions.CompactionRequest) error {
	s, err := u.sessions.Session(ctx, r.Key)
	if err != nil {
		return err
	}
	return u.store.Log(ctx, l, sessions.LogEntry{
		Key: r.Key, Trigger: TriggerManual, Focus: r.Focus, RequestedBy: r.RequestedBy, Outcome: sessions.CompactionFailed, Error: fmt.Sprintf("%s: none of %d attempts ended", reasonDied, r.Attempts),
		TokensBefore: s.TotalTokens, TokensAfter: s.TotalTokens, Failures: s.CompactFailures, RetryAt: s.CompactRetryAt, Rearm: s.RearmTokens,
	})
}
