package upkeep

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/memory/consolidate"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

const (
	// indexBatch is for one step, indexSteps for one check: after an upgrade 3,300 events a second, a tenth of a core.
	indexBatch = 2000
	indexSteps = 50
	// tidyInterval is long: the checks for expired facts and overfull scopes read whole tables.
	tidyInterval = time.Hour
	// maxScopeCalls bounds the model calls of one check for one scope, maxTidyCalls for all.
	maxScopeCalls = 10
	maxTidyCalls  = 50
	// minGroupPause follows a group of facts that could not be merged. It doubles each time, up to maxGroupPause.
	minGroupPause    = 6 * time.Hour
	maxGroupPause    = 7 * 24 * time.Hour
	overfullLogEvery = 24 * time.Hour
)

// tidier indexes what the search reads, and keeps the facts of each scope within their limit.
type tidier struct {
	shared       *parts.Shared
	views        *view.Builder
	sessions     Sessions
	store        memory.Upkeep
	index        Index
	consolidator consolidate.Consolidator // without a model's name
	slots        *semaphore.Weighted
	accuser      accuser
	charger      charger
}

func (t tidier) consolidations(key sessions.Key) *consolidate.Consolidator {
	c, set := t.consolidator, t.shared.Current.For(key)
	c.Name, c.Context, c.Language = set.SummaryModel, set.Compaction.Window.Context, t.shared.Language(key)
	return &c
}

// indexBacklog indexes the logs that turns left behind, and rows of imports and older releases.
func (t tidier) indexBacklog(ctx context.Context) error {
	for range indexSteps {
		n, err := t.index.IndexBacklog(ctx, indexBatch)
		if err != nil || n < indexBatch || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

var groupPauses = retry.Pauses{First: minGroupPause, Max: maxGroupPause}

// tidyState is kept between two checks. It belongs to one goroutine.
type tidyState struct {
	tidied   time.Time
	pauses   map[memory.FactGroup]groupPause    // by group, with Held zero
	logged   map[memory.OverfullScope]time.Time // last warning by scope, with Held zero
	timeouts timeouts
	calls    int // in this check
}

type groupPause struct {
	until time.Time
	tries int
}

// tidy runs on the leader, so that calls and table scans are not repeated.
func (t tidier) tidy(ctx context.Context, c *tidyState) {
	c.tidied = time.Now()
	if n, err := t.store.DeleteExpired(ctx); err != nil {
		periodic.LogFailure(ctx, err, "Expired memories could not be deleted")
	} else if n > 0 {
		zerolog.Ctx(ctx).Info().Int("memories", n).Msg("Expired memories deleted")
	}
	if t.views.Memory.Remember.MaxPerScope > 0 {
		t.consolidate(ctx, c)
	}
}

func (t tidier) consolidate(ctx context.Context, c *tidyState) {
	c.timeouts, c.calls = 0, 0
	maps.DeleteFunc(c.pauses, func(_ memory.FactGroup, r groupPause) bool { return time.Since(r.until) > maxGroupPause })
	maps.DeleteFunc(c.logged, func(_ memory.OverfullScope, at time.Time) bool { return time.Since(at) >= overfullLogEvery })
	for after := (memory.OverfullScope{}); ; {
		overfull, err := t.store.OverfullScopes(ctx, t.views.Memory.Remember.MaxPerScope, after)
		if err != nil {
			periodic.LogFailure(ctx, err, "Overfull scopes could not be listed")
		}
		if err != nil || len(overfull) == 0 {
			return
		}
		for _, scope := range overfull {
			t.thinScope(ctx, c, scope)
			if ctx.Err() != nil || c.timeouts.tooMany() || c.calls >= maxTidyCalls || !t.shared.Leases.Trusted() {
				return
			}
		}
		after = overfull[len(overfull)-1]
	}
}

// thinScope merges facts group by group, the highest first, until the scope is within its limit or its calls are used
// up. It skips a group whose merge failed before or whose session has spent its budget. It warns if nothing was merged
// in a scope of more than twice its limit.
func (t tidier) thinScope(ctx context.Context, c *tidyState, scope memory.OverfullScope) {
	groups, err := t.store.FactGroups(ctx, scope)
	if err != nil {
		periodic.LogFailure(ctx, err, "Overfull scope could not be read")
		return
	}
	most, held, calls, waits := t.views.Memory.Remember.MaxPerScope, scope.Held, 0, false
	for _, p := range groups {
		p.Held = 0
		for held > most && calls < maxScopeCalls && c.calls < maxTidyCalls && time.Now().After(c.pauses[p].until) {
			if affords, err := t.hasBudget(ctx, p); err != nil {
				periodic.LogFailure(withSession(ctx, p.Session), err, "Overfull scope skipped: failed to read the budget of its session")
				return
			} else if !affords {
				waits = true
				break
			}
			calls, c.calls = calls+1, c.calls+1
			n, err := t.mergeFacts(ctx, p, held)
			c.timeouts.record(err)
			if held -= n; n > 0 {
				delete(c.pauses, p)
				continue
			}
			if ctx.Err() != nil || errors.Is(err, sessions.ErrConflict) { // another process changed the facts
				return
			}
			tries := c.pauses[p].tries
			c.pauses[p] = groupPause{until: time.Now().Add(groupPauses.After(tries)), tries: tries + 1}
			if c.timeouts.tooMany() {
				return
			}
		}
	}
	name := memory.OverfullScope{Scope: scope.Scope, ScopeID: scope.ScopeID}
	if _, logged := c.logged[name]; !logged && !waits && held == scope.Held && held > 2*most {
		c.logged[name] = time.Now()
		zerolog.Ctx(ctx).Warn().Str("scope", string(scope.Scope)).Str("scope_id", scope.ScopeID).Int("held", held).Int("max", most).
			Msg("Consolidation of an overfull scope merged no facts, all stay")
	}
}

func (t tidier) hasBudget(ctx context.Context, p memory.FactGroup) (bool, error) {
	s, err := t.sessions.Session(ctx, p.Session)
	if errors.Is(err, sessions.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !lowBudgetSpent(t.views.Choices.Settings(s), s), nil
}

func (t tidier) mergeFacts(ctx context.Context, p memory.FactGroup, held int) (fewer int, err error) {
	if err := t.slots.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer t.slots.Release(1)
	ctx = withSession(ctx, p.Session)
	one, stop := context.WithTimeout(ctx, t.shared.CompactDeadline)
	defer stop()
	p.Reads = t.accuser.reads(p.Session)
	done, err := t.consolidations(p.Session).Run(one, p)
	if err != nil && t.accuser.accuseFacts(one, p, err) {
		t.charger.charge(ctx, p.Session, sessions.Spending{Kind: sessions.SpentConsolidation, Usage: done.Usage, Cost: done.Cost, Model: done.Model})
		done, err = t.consolidations(p.Session).Run(one, p)
	}
	t.charger.charge(ctx, p.Session, sessions.Spending{Kind: sessions.SpentConsolidation, Usage: done.Usage, Cost: done.Cost, Model: done.Model})
	if err != nil {
		if errors.Is(err, sessions.ErrConflict) {
			return 0, err
		}
		periodic.LogFailure(ctx, err, "Failed to merge facts of an overfull scope")
		return 0, err
	}
	if done.Old > 0 {
		zerolog.Ctx(ctx).Info().Str("scope", string(p.Scope)).Int("held", held).Int("old", done.Old).
			Int("new", len(done.Receipt.Saved)).Int("tokens", done.Usage.Prompt+done.Usage.Completion).Msg("Memories consolidated")
	}
	return done.Old - len(done.Receipt.Saved), nil
}
