package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/periodic"
	"ebb/sessions"
)

const (
	// requestInterval is the time between two checks for requested compactions. A person waits for them.
	requestInterval = 2 * time.Second
	// maxRequestAttempts is the number of attempts after which a request is dropped: its process died each time.
	maxRequestAttempts = 3
)

// requests executes the compactions that administrators asked for.
type requests struct{ *Worker }

// compactAll executes all of them, one at a time, as /compact does in a turn. The compaction log has the outcome.
func (u requests) compactAll(ctx context.Context) error {
	list, err := u.cfg.Requests.CompactionRequests(ctx, u.leases.Owner(), pageSize)
	if err != nil {
		return err
	}
	for _, r := range list {
		if err := u.compactOne(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (u requests) compactOne(ctx context.Context, r sessions.CompactionRequest) error {
	if err := u.slots.Acquire(ctx, 1); err != nil {
		return nil
	}
	defer u.slots.Release(1)
	lease, err := u.leases.Get(ctx, r.Key)
	if err != nil {
		return nil // another replica took the session meanwhile
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(r.Key).Int64("term", lease.Term).Logger()
	ctx = log.WithContext(ctx)
	switch err := u.cfg.Requests.StartRequest(ctx, r.Key); {
	case errors.Is(err, sessions.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	if r.Attempts < maxRequestAttempts {
		one, stop := context.WithTimeout(WithSettings(ctx, r.Settings), u.cfg.CompactDeadline)
		_, err = u.Compact(one, lease, r.Focus, 0, func(sessions.View) string { return TriggerManual })
		stop()
		if ctx.Err() != nil { // a stop: the next owner repeats it
			return nil
		}
		if err != nil && !NothingToCompact(err) {
			periodic.LogFailure(ctx, err, "Requested compaction failed")
		}
	} else {
		log.Warn().Int("attempts", r.Attempts).Msg("Requested compaction dropped: no attempt ended")
	}
	return u.cfg.Requests.EndRequest(ctx, r.Key)
}
