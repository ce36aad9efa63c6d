package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sql/dbsqlc"
)

// cutPoll is the pause between two checks of awaited work.
const cutPoll = 50 * time.Millisecond

// ClaimTime is the time that a claimed reply belongs to one process. Then the sweep shows it to that process again.
const ClaimTime = time.Minute

// OpenWork is the error of an erasure that waits: for a turn or upkeep whose session erasures ended
// [sessions.MaxCuts] times, or for a reply that is being sent.
type OpenWork struct {
	Key   sessions.Key
	Term  int64
	Asks  bool // the running turn asks for the erasure
	Reply bool // the work is to send the session's replies; the term is 0
}

// Error implements error.
func (o *OpenWork) Error() string { return "the session has work under way" }

// IsWorkOpen requires a living replica. A turn or upkeep has the current lease. The try of a reply is not older than
// [sessions.SendTime].
func (d *DB) IsWorkOpen(ctx context.Context, db dbsqlc.DBTX, o *OpenWork) (bool, error) {
	if o.Reply {
		return d.Q.SendIsOpen(ctx, db, &dbsqlc.SendIsOpenParams{
			SessionKey: o.Key, LeftSeconds: (ClaimTime - sessions.SendTime).Seconds(),
		})
	}
	return d.Q.WorkIsSpared(ctx, db, &dbsqlc.WorkIsSparedParams{
		SessionKey: o.Key, Term: o.Term, TtlSeconds: d.TTL.Seconds(), MostCut: sessions.MaxCuts, Asks: o.Asks,
	})
}

type around struct{}

// AroundWaits returns a context in which do runs each wait for open work, and releases what others need. The do of an
// outer context runs around it.
func AroundWaits(ctx context.Context, do func(wait func() error) error) context.Context {
	inner := do
	if outer, ok := ctx.Value(around{}).(func(func() error) error); ok {
		inner = func(wait func() error) error { return outer(func() error { return do(wait) }) }
	}
	return context.WithValue(ctx, around{}, inner)
}

func (d *DB) ended(ctx context.Context, o *OpenWork) error {
	wait := func() error { return d.poll(ctx, o) }
	if do, ok := ctx.Value(around{}).(func(func() error) error); ok {
		return do(wait)
	}
	return wait()
}

func (d *DB) poll(ctx context.Context, o *OpenWork) error {
	log := zerolog.Ctx(ctx).Info().Str("awaited_session", string(o.Key)) // a turn that erases has its own session in its lines
	if o.Reply {
		log.Msg("Erasure waits for a reply that is being sent")
	} else {
		log.Int64("awaited_term", o.Term).Msg("Erasure waits for a turn or upkeep")
	}
	err := periodic.Poll(ctx, cutPoll, func() (bool, error) {
		open, err := d.IsWorkOpen(ctx, d.Pool, o)
		return !open, err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", o, err)
	}
	return err
}
