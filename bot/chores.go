package bot

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/sessions"
)

const (
	// indexBatch is how many rows without an index one step takes up, and indexSteps how many steps one look.
	indexBatch = 500
	indexSteps = 20
	// tidyEvery is the time between two looks for what expired and for scopes that hold too much.
	tidyEvery = 10 * time.Minute
	// crowdRest is how long a scope is left as it is after its facts could not be told in fewer.
	crowdRest = 6 * time.Hour
)

// chores are what the background does for the memory as a whole. They belong to one goroutine.
type chores struct {
	tidied time.Time
	rests  map[memory.Crowded]time.Time // until when; without what a scope holds
}

// keep does what is due: rows that older releases left without an index, what expired, and scopes that hold too much.
func (b *Bot) keep(ctx context.Context, c *chores) {
	if b.cfg.Keeper == nil {
		return
	}
	for range indexSteps {
		n, err := b.cfg.Keeper.IndexBacklog(ctx, indexBatch)
		if err != nil {
			quietly(ctx, err, "Messages and memories could not be indexed")
		}
		if err != nil || n < indexBatch {
			break
		}
	}
	if time.Since(c.tidied) < tidyEvery || ctx.Err() != nil {
		return
	}
	c.tidied = time.Now()
	if n, err := b.cfg.Keeper.Expire(ctx); err != nil {
		quietly(ctx, err, "Expired memories could not be deleted")
	} else if n > 0 {
		zerolog.Ctx(ctx).Info().Int("memories", n).Msg("Expired memories deleted")
	}
	b.consolidate(ctx, c)
}

// consolidate has the oldest facts of the fullest scopes told as fewer, where they hold more than they should.
func (b *Bot) consolidate(ctx context.Context, c *chores) {
	if b.cfg.Remember.MaxPerScope <= 0 {
		return
	}
	crowded, err := b.cfg.Keeper.Overfull(ctx, b.cfg.Remember.MaxPerScope)
	if err != nil {
		quietly(ctx, err, "Overfull scopes could not be listed")
		return
	}
	for _, scope := range crowded {
		name := memory.Crowded{Scope: scope.Scope, ScopeID: scope.ScopeID}
		if time.Now().Before(c.rests[name]) {
			continue
		}
		delete(c.rests, name)
		if err := b.spare.Acquire(ctx, 1); err != nil {
			return
		}
		one, stop := context.WithTimeout(ctx, b.cfg.CompactDeadline)
		done, err := b.consolidator.Run(one, scope)
		stop()
		b.spare.Release(1)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, sessions.ErrConflict): // another replica was there first
		case err != nil || done.Old == 0:
			c.rests[name] = time.Now().Add(crowdRest)
			if err != nil {
				quietly(ctx, err, "Facts of an overfull scope could not be told in fewer, they stay as they are")
			}
		default:
			zerolog.Ctx(ctx).Info().Str("scope", string(scope.Scope)).Int("held", scope.Held).Int("old", done.Old).
				Int("new", done.Receipt.Rows()).Int("tokens", done.Usage.Prompt+done.Usage.Completion).Msg("Memories consolidated")
		}
	}
}
