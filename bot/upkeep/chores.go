package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/bot/periodic"
	"ebb/memory"
	"ebb/sessions"
)

const (
	// indexBatch is how many rows without an index one step takes up, and indexSteps how many steps one look.
	indexBatch = 500
	indexSteps = 20
	// TidyEvery is the time between two looks for what expired and for scopes that hold too much: both read whole tables.
	TidyEvery = time.Hour
	// crowdCalls is how many model calls one look spends on one scope, and lookCalls on all.
	crowdCalls = 10
	LookCalls  = 50
	// PileRest is how long a pile is left as it is after it could not be told in fewer; it doubles each time, up to pileMost.
	PileRest = 6 * time.Hour
	pileMost = 7 * 24 * time.Hour
	// crowdTold is the time between two lines of the log that say of one scope that it can't be thinned out.
	crowdTold = 24 * time.Hour
)

// Keep does what the memory as a whole needs: it indexes rows that older releases left without an index, and beside that,
// for the sake of a model that may be slow, tidies up. It ends with ctx.
func (u *Worker) Keep(ctx context.Context) {
	if u.cfg.Keeper == nil {
		return
	}
	var g errgroup.Group
	g.Go(func() error { periodic.Every(ctx, SettleEvery, u.leases.Trusted, u.index); return nil })
	tidy := &chores{rests: map[memory.FactGroup]rest{}, told: map[memory.OverfullScope]time.Time{}}
	g.Go(func() error {
		periodic.Every(ctx, SettleEvery, u.leases.Trusted, func(ctx context.Context) { u.tidy(ctx, tidy) })
		return nil
	})
	_ = g.Wait() // its functions return no errors
}

func (u *Worker) index(ctx context.Context) {
	for range indexSteps {
		n, err := u.cfg.Keeper.IndexBacklog(ctx, indexBatch)
		if err != nil {
			periodic.LogFailure(ctx, err, "Messages and memories could not be indexed")
		}
		if err != nil || n < indexBatch || ctx.Err() != nil {
			return
		}
	}
}

// chores are what tidying up remembers from one look to the next. They belong to one goroutine.
type chores struct {
	tidied time.Time
	rests  map[memory.FactGroup]rest          // by piles without what they hold
	told   map[memory.OverfullScope]time.Time // by scopes without what they hold: when the log last had one
	look   breaker
	calls  int // of the look
}

// rest is how long a pile is left as it is.
type rest struct {
	until time.Time
	tries int
}

// tidy deletes what expired and thins out scopes that hold too much, once an hour, on the first of the replicas that
// live: the others neither pay for the same nor read the tables.
func (u *Worker) tidy(ctx context.Context, c *chores) {
	if time.Since(c.tidied) < TidyEvery {
		return
	}
	leads, err := u.cfg.Keeper.IsLeader(ctx, u.leases.Owner())
	if err != nil {
		periodic.LogFailure(ctx, err, "Memory is not tidied up: the first replica is not known")
	}
	if err != nil || !leads {
		return
	}
	c.tidied = time.Now()
	if n, err := u.cfg.Keeper.DeleteExpired(ctx); err != nil {
		periodic.LogFailure(ctx, err, "Expired memories could not be deleted")
	} else if n > 0 {
		zerolog.Ctx(ctx).Info().Int("memories", n).Msg("Expired memories deleted")
	}
	if u.cfg.Remember.MaxPerScope > 0 {
		u.consolidate(ctx, c)
	}
}

// consolidate has facts of the fullest scopes told as fewer, where they hold more than they should.
func (u *Worker) consolidate(ctx context.Context, c *chores) {
	c.look, c.calls = breaker{}, 0
	maps.DeleteFunc(c.rests, func(_ memory.FactGroup, r rest) bool { return time.Since(r.until) > pileMost })
	maps.DeleteFunc(c.told, func(_ memory.OverfullScope, at time.Time) bool { return time.Since(at) >= crowdTold })
	for after := (memory.OverfullScope{}); ; {
		crowded, err := u.cfg.Keeper.OverfullScopes(ctx, u.cfg.Remember.MaxPerScope, after)
		if err != nil {
			periodic.LogFailure(ctx, err, "Overfull scopes could not be listed")
		}
		if err != nil || len(crowded) == 0 {
			return
		}
		for _, scope := range crowded {
			u.thin(ctx, c, scope)
			if ctx.Err() != nil || c.look.over() || c.calls >= LookCalls || !u.leases.Trusted() {
				return
			}
		}
		after = crowded[len(crowded)-1]
	}
}

// thin has the facts of a scope told as fewer, pile by pile, the highest first, until it holds what it should or has had
// its calls. A pile that can't be told in fewer is left, and the next one tried; so is one whose session has had its part of
// the day. Where nothing could be joined all stays, and the operators are told where that is far too much.
func (u *Worker) thin(ctx context.Context, c *chores, scope memory.OverfullScope) {
	piles, err := u.cfg.Keeper.FactGroups(ctx, scope)
	if err != nil {
		periodic.LogFailure(ctx, err, "Overfull scope could not be read")
		return
	}
	most, held, calls, waits := u.cfg.Remember.MaxPerScope, scope.Held, 0, false
	for _, p := range piles {
		p.Held = 0
		for held > most && calls < crowdCalls && c.calls < LookCalls && time.Now().After(c.rests[p].until) {
			if affords, err := u.affords(ctx, p); err != nil {
				periodic.LogFailure(ctx, err, "Overfull scope is left: what its session may spend is not known")
				return
			} else if !affords {
				waits = true
				break
			}
			calls, c.calls = calls+1, c.calls+1
			n, err := u.join(ctx, p, held)
			c.look.note(err)
			if held -= n; n > 0 {
				delete(c.rests, p)
				continue
			}
			if ctx.Err() != nil || errors.Is(err, sessions.ErrConflict) { // somebody else was there: its facts are others now
				return
			}
			tries := c.rests[p].tries
			c.rests[p] = rest{until: time.Now().Add(min(PileRest<<min(tries, 10), pileMost)), tries: tries + 1}
			if c.look.over() {
				return
			}
		}
	}
	name := memory.OverfullScope{Scope: scope.Scope, ScopeID: scope.ScopeID}
	if _, told := c.told[name]; !told && !waits && held == scope.Held && held > 2*most {
		c.told[name] = time.Now()
		zerolog.Ctx(ctx).Warn().Str("scope", string(scope.Scope)).Str("scope_id", scope.ScopeID).Int("held", held).Int("max", most).
			Msg("Scope holds more than twice the facts that it should and none could be told in fewer, all stay")
	}
}

// affords reports whether the session that a pile comes from may still spend on work of low priority today.
func (u *Worker) affords(ctx context.Context, p memory.FactGroup) (bool, error) {
	s, err := u.store.Session(ctx, p.Session)
	if errors.Is(err, sessions.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read session %s: %w", p.Session, err)
	}
	return !spentLow(u.views.Settings(s), s), nil
}

// Charge counts what model calls took of which no row of their own is left.
func (u *Worker) Charge(ctx context.Context, key sessions.Key, one sessions.Spending) {
	if one.Usage == (sessions.Usage{}) && one.Cost == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), u.cfg.CommitTimeout)
	defer stop()
	if err := u.store.Charge(ctx, key, one); err != nil {
		periodic.LogFailure(ctx, err, "Tokens of model calls could not be counted")
	}
}

// join has some facts of a pile told as fewer, and says by how many; held is what their scope holds.
func (u *Worker) join(ctx context.Context, p memory.FactGroup, held int) (fewer int, err error) {
	if err := u.spare.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer u.spare.Release(1)
	one, stop := context.WithTimeout(ctx, u.cfg.CompactDeadline)
	defer stop()
	done, err := u.consolidator.Run(one, p)
	u.Charge(ctx, p.Session, sessions.Spending{Kind: sessions.SpentConsolidation, Usage: done.Usage, Cost: done.Cost})
	if err != nil {
		if errors.Is(err, sessions.ErrConflict) {
			return 0, err
		}
		periodic.LogFailure(ctx, err, "Facts of an overfull scope could not be told in fewer, they stay as they are")
		return 0, err
	}
	if done.Old > 0 {
		zerolog.Ctx(ctx).Info().Str("scope", string(p.Scope)).Int("held", held).Int("old", done.Old).
			Int("new", done.Receipt.Rows()).Int("tokens", done.Usage.Prompt+done.Usage.Completion).Msg("Memories consolidated")
	}
	return done.Old - done.Receipt.Rows(), nil
}
